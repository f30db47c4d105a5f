/*
 * Two-way TCP in ns-3, for `make bench` to compare with: the network of topologies/two_node.py, one
 * connection each way whose window is the receiver's, an ACK for each segment. With --direct the two hosts
 * are joined by the bottleneck itself, and their devices hold its queues.
 *
 * Prints the payload that each sink received after --from seconds, in bytes/s: what was simulated must be
 * the same before times are compared. With --pcap the two hosts' devices are captured.
 */
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

static const uint16_t PORT = 5001;
static const uint32_t HEADERS = 40;

int main(int argc, char **argv)
{
	std::string rate = "131Mbps", delay = "8416us", pcap;
	uint32_t mtu = 9180, left = 28, right = 28;
	double seconds = 100, from = 2, later = 0;
	bool direct = false;

	CommandLine options;
	options.AddValue("rate", "of the bottleneck", rate);
	options.AddValue("delay", "of the bottleneck", delay);
	options.AddValue("mtu", "bytes of a full IP packet", mtu);
	options.AddValue("left", "window of the first connection, segments", left);
	options.AddValue("right", "window of the second, the other way", right);
	options.AddValue("later", "when the second starts, s", later);
	options.AddValue("seconds", "to simulate", seconds);
	options.AddValue("from", "when counting begins, s", from);
	options.AddValue("direct", "join the hosts without routers", direct);
	options.AddValue("pcap", "begin of the captures' names; none by default", pcap);
	options.Parse(argc, argv);

	const uint32_t segment = mtu - HEADERS;
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
	Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
	Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(std::max(left, right)));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 24));
	Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));

	NodeContainer nodes(direct ? 2 : 4); /* h1, r1, r2, h2, or the hosts alone */
	const uint32_t last = nodes.GetN() - 1;
	PointToPointHelper access, bottleneck;
	access.SetDeviceAttribute("DataRate", StringValue("100Gbps"));
	bottleneck.SetDeviceAttribute("DataRate", StringValue(rate));
	bottleneck.SetChannelAttribute("Delay", StringValue(delay));
	for (auto *link : {&access, &bottleneck}) {
		link->SetDeviceAttribute("Mtu", UintegerValue(mtu));
		link->SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("10000p"));
	}
	std::vector<NetDeviceContainer> links;
	for (uint32_t link = 0; link < last; link++) {
		PointToPointHelper &helper = direct || link == 1 ? bottleneck : access;
		links.push_back(helper.Install(nodes.Get(link), nodes.Get(link + 1)));
	}
	InternetStackHelper().Install(nodes);
	Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
	std::vector<Ipv4InterfaceContainer> interfaces;
	for (NetDeviceContainer &link : links) {
		interfaces.push_back(addresses.Assign(link));
		/* The device's own queue is the only one. */
		TrafficControlHelper().Uninstall(link);
		addresses.NewNetwork();
	}
	Ipv4GlobalRoutingHelper::PopulateRoutingTables();

	struct {
		uint32_t source, sink;
		Ipv4Address to;
		uint32_t window;
		double start;
	} ways[] = {
		{0, last, interfaces.back().GetAddress(1), left, 0},
		{last, 0, interfaces.front().GetAddress(0), right, later},
	};
	Ptr<PacketSink> sinks[2];
	uint64_t before[2];
	for (int way = 0; way < 2; way++) {
		/* A receiver's socket takes its buffer, and so its window, when it is made. */
		Simulator::Schedule(MilliSeconds(2 * way), [window = ways[way].window, segment] {
			Config::SetDefault("ns3::TcpSocket::RcvBufSize",
					   UintegerValue(window * segment));
		});
		PacketSinkHelper sink("ns3::TcpSocketFactory",
				      InetSocketAddress(Ipv4Address::GetAny(), PORT));
		ApplicationContainer receiving = sink.Install(nodes.Get(ways[way].sink));
		sinks[way] = DynamicCast<PacketSink>(receiving.Get(0));
		receiving.Start(MilliSeconds(2 * way + 1));
		BulkSendHelper bulk("ns3::TcpSocketFactory",
				    InetSocketAddress(ways[way].to, PORT));
		bulk.SetAttribute("MaxBytes", UintegerValue(0));
		bulk.SetAttribute("SendSize", UintegerValue(segment));
		ApplicationContainer sending = bulk.Install(nodes.Get(ways[way].source));
		sending.Start(MilliSeconds(10) + Seconds(ways[way].start));
		Simulator::Schedule(Seconds(from), [&, way] { before[way] = sinks[way]->GetTotalRx(); });
	}
	if (!pcap.empty())
		access.EnablePcap(pcap, NodeContainer(nodes.Get(0), nodes.Get(last)));
	Simulator::Stop(Seconds(seconds));
	Simulator::Run();
	for (int way = 0; way < 2; way++)
		std::cout << (sinks[way]->GetTotalRx() - before[way]) / (seconds - from) << std::endl;
	Simulator::Destroy();
	return 0;
}
