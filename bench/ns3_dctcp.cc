/*
 * Figure 17 of Alizadeh et al. (2010) in ns-3, for `make bench OF=dctcp` to compare with: the network of
 * topologies/dctcp_racks.py, with the parameters of ns-3's own examples/tcp/dctcp-example.cc.
 *
 * Prints the payload that reached each sink after --from seconds, in bytes/s: ten of S1, twenty of S2, ten of
 * S3. Three options change what the example leaves to ns-3's defaults: --device is the number of packets that
 * a device holds below its qdisc, --step marks each packet above K in place of RED's rising share, and --least
 * is the least window, in segments.
 */
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

static const uint16_t PORT = 5001;
static uint32_t least_segments;

/* DCTCP with a least window, as Linux's dctcp_ssthresh has. */
class BoundedDctcp : public TcpDctcp
{
      public:
	static TypeId GetTypeId()
	{
		static TypeId type = TypeId("ns3::BoundedDctcp")
					     .SetParent<TcpDctcp>()
					     .AddConstructor<BoundedDctcp>();
		return type;
	}

	Ptr<TcpCongestionOps> Fork() override
	{
		return CopyObject<BoundedDctcp>(this);
	}

	uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t in_flight) override
	{
		return std::max(TcpDctcp::GetSsThresh(state, in_flight),
				least_segments * state->m_segmentSize);
	}
};
NS_OBJECT_ENSURE_REGISTERED(BoundedDctcp);

static TrafficControlHelper marking(const std::string &rate, double above, double all, bool step)
{
	TrafficControlHelper control;
	control.SetRootQueueDisc("ns3::RedQueueDisc", "LinkBandwidth", StringValue(rate), "LinkDelay",
				 StringValue("10us"), "MinTh", DoubleValue(above), "MaxTh",
				 DoubleValue(step ? above : all), "Gentle", BooleanValue(!step));
	return control;
}

int main(int argc, char **argv)
{
	const int COUNTS[] = {10, 20, 10};
	double seconds = 5, from = 2;
	bool step = false;
	std::string device = "100p";

	CommandLine options;
	options.AddValue("seconds", "to simulate", seconds);
	options.AddValue("from", "when counting begins, s", from);
	options.AddValue("device", "packets that a device holds below its qdisc", device);
	options.AddValue("step", "mark each packet above K", step);
	options.AddValue("least", "window of every flow, segments; 0: none", least_segments);
	options.Parse(argc, argv);

	Config::SetDefault("ns3::TcpL4Protocol::SocketType",
			   TypeIdValue(least_segments ? BoundedDctcp::GetTypeId() :
							TcpDctcp::GetTypeId()));
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
	Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
	Config::SetDefault("ns3::RedQueueDisc::UseEcn", BooleanValue(true));
	Config::SetDefault("ns3::RedQueueDisc::UseHardDrop", BooleanValue(false));
	Config::SetDefault("ns3::RedQueueDisc::MeanPktSize", UintegerValue(1500));
	Config::SetDefault("ns3::RedQueueDisc::MaxSize", QueueSizeValue(QueueSize("2666p")));
	/* The average is the queue's length itself. */
	Config::SetDefault("ns3::RedQueueDisc::QW", DoubleValue(1));

	PointToPointHelper edge, trunk;
	edge.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
	trunk.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
	for (auto *link : {&edge, &trunk}) {
		link->SetChannelAttribute("Delay", StringValue("10us"));
		link->SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(device));
	}
	TrafficControlHelper fast = step ? marking("10Gbps", 65, 65, true) :
					   marking("10Gbps", 50, 150, false);
	TrafficControlHelper slow = marking("1Gbps", 20, 60, step);

	NodeContainer switches(2), r1(1), senders[3], r2(COUNTS[1]);
	InternetStackHelper stack;
	stack.Install(switches);
	stack.Install(r1);
	stack.Install(r2);
	Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
	auto join = [&](PointToPointHelper &link, TrafficControlHelper &marks, Ptr<Node> host,
			Ptr<Node> at) {
		NetDeviceContainer ends = link.Install(host, at);
		marks.Install(ends.Get(1));
		Ipv4Address address = addresses.Assign(ends).GetAddress(0);
		addresses.NewNetwork();
		return address;
	};
	NetDeviceContainer between = trunk.Install(switches);
	fast.Install(between);
	addresses.Assign(between);
	addresses.NewNetwork();
	const Ipv4Address r1_address = join(edge, slow, r1.Get(0), switches.Get(1));

	std::vector<Ptr<PacketSink>> sinks;
	int number = 0;
	for (int group = 0; group < 3; group++) {
		senders[group].Create(COUNTS[group]);
		stack.Install(senders[group]);
		for (int n = 0; n < COUNTS[group]; n++, number++) {
			join(edge, slow, senders[group].Get(n), switches.Get(group == 2));
			const bool own = group == 1;
			const Ipv4Address to =
				own ? join(edge, slow, r2.Get(n), switches.Get(1)) : r1_address;
			const uint16_t port = PORT + number;
			PacketSinkHelper sink("ns3::TcpSocketFactory",
					      InetSocketAddress(Ipv4Address::GetAny(), port));
			ApplicationContainer receiving =
				sink.Install(own ? r2.Get(n) : r1.Get(0));
			sinks.push_back(DynamicCast<PacketSink>(receiving.Get(0)));
			receiving.Start(Seconds(0));
			BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(to, port));
			bulk.SetAttribute("MaxBytes", UintegerValue(0));
			bulk.SetAttribute("SendSize", UintegerValue(1448));
			ApplicationContainer sending = bulk.Install(senders[group].Get(n));
			sending.Start(MilliSeconds(25 * number));
		}
	}
	Ipv4GlobalRoutingHelper::PopulateRoutingTables();

	std::vector<uint64_t> before(sinks.size());
	Simulator::Schedule(Seconds(from), [&] {
		for (size_t n = 0; n < sinks.size(); n++)
			before[n] = sinks[n]->GetTotalRx();
	});
	Simulator::Stop(Seconds(seconds));
	Simulator::Run();
	for (size_t n = 0; n < sinks.size(); n++)
		std::cout << (sinks[n]->GetTotalRx() - before[n]) / (seconds - from) << std::endl;
	Simulator::Destroy();
	return 0;
}
