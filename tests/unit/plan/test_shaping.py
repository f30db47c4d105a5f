"""Link profiles become the tc commands that the fidelity rules demand, or are refused."""

import dataclasses
import re
from typing import Any

import pytest

from twoway.description.experiment import Profile
from twoway.description.graph import Graph
from twoway.description.placement import behind_problems, placement_problems
from twoway.description.rules import profile_problems
from twoway.description.topology import load_topology
from twoway.errors import SpecError
from twoway.links.shaper import Shaper
from twoway.paths import TOPOLOGIES
from twoway.plan.shaping import compile_profile


def _profile(**changes: Any) -> Profile:
    direction = {"rate_mbit": 10, "delay_ms": 20, "queue_packets": 50, **changes}
    return Profile.model_validate(
        {"schema": 1, "title": "t", "directions": {"forward": direction, "reverse": direction}}
    )


@pytest.fixture
def graph() -> Graph:
    """The two-node topology."""
    return load_topology(TOPOLOGIES / "two_node.py", {})


def refuse(profile: Profile, graph: Graph) -> None:
    """Raise an error with the problems of a profile's places."""
    raise SpecError(placement_problems(profile, graph))


def shaper_of(graph: Graph, interface: str = "r1-eth1", **fields: Any) -> Shaper:
    """Return the shaper of an interface, by default that of the forward queue."""
    shapers = compile_profile(_profile(**fields), graph)
    return next(each for each in shapers if each.interface.name == interface)


def test_rate_and_delay_go_to_different_hops(graph: Graph) -> None:
    """The rate with its queue is on r1's interface to r2, the delay on r2's to h2."""
    shapers = compile_profile(_profile(), graph)
    by_interface = {s.interface.name: " ".join(s.arguments) for s in shapers}
    assert by_interface["r1-eth1"] == "netem limit 50 rate 10000000bit"
    assert by_interface["r2-eth0"].endswith("delay 20000us")
    assert set(by_interface) == {"r1-eth0", "r1-eth1", "r2-eth0", "r2-eth1"}


def test_delay_queue_holds_ten_times_what_it_can_fill(graph: Graph) -> None:
    """A delay's queue has ten times the 54-byte frames that 100 Mbit/s send in 200 ms."""
    delay = shaper_of(graph, "r2-eth0", rate_mbit=100, delay_ms=200)
    assert delay.arguments[2] == "462963"


def test_overhead_and_cells_follow_the_rate(graph: Graph) -> None:
    """The rate of netem is followed by overhead, cell size and cell overhead, in this order."""
    shaper = shaper_of(graph, overhead_bytes=-14, cell_bytes=48, cell_overhead_bytes=5)
    assert shaper.arguments[-3:] == ("-14", "48", "5")


def test_rate_and_delay_on_one_interface_is_refused(graph: Graph) -> None:
    """Rate and delay on one interface are refused: netem's limit would count packets in flight."""
    bad = dataclasses.replace(graph, delays=graph.queues)
    with pytest.raises(SpecError, match="r1-eth1: rate and delay on one interface"):
        refuse(_profile(), bad)


def test_shaping_on_a_sending_host_is_refused(graph: Graph) -> None:
    """Shaping on a sending host is refused: TCP small queues would keep its queue empty."""
    host = tuple(i for i in graph.interfaces if i.name == "h1-eth0")
    bad = dataclasses.replace(graph, queues={**graph.queues, "forward": host})
    with pytest.raises(SpecError, match="h1-eth0: shaping on h1, a sending host"):
        refuse(_profile(), bad)


def test_directions_must_be_the_topologys(graph: Graph) -> None:
    """A profile that names other directions than the topology is refused."""
    up = {"up": {"rate_mbit": 1, "delay_ms": 0, "queue_packets": 1}}
    profile = Profile.model_validate({"schema": 1, "title": "t", "directions": up})
    with pytest.raises(SpecError, match="the topology has forward, reverse; got up"):
        refuse(profile, graph)


def test_inexact_delay_is_refused_with_its_neighbours(graph: Graph) -> None:
    """A delay that tc would round is refused, naming the two nearest exact ones."""
    with pytest.raises(SpecError, match=r"got 8.41, nearest 8.408 and 8.416"):
        refuse(_profile(delay_ms=8.41), graph)


@pytest.mark.parametrize("delay_ms", [0.008, 8.416, 10, 1000, 7.992])
def test_exact_delays_are_accepted(graph: Graph, delay_ms: float) -> None:
    """Every multiple of 8 us reaches tc as that many whole microseconds."""
    delay = shaper_of(graph, "r2-eth0", delay_ms=delay_ms)
    assert f"{round(delay_ms * 1000)}us" in delay.arguments


def test_dtm_channel_takes_the_place_of_a_rate(graph: Graph) -> None:
    """A direction with dtm has the qdisc dtm on its bottleneck, and its options are read back."""
    channel = shaper_of(graph, rate_mbit=None, dtm={"slots": 7, "rate": {}})
    assert channel.arguments[:5] == ("dtm", "slots", "7", "limit", "50")
    assert (("options", "allocator"), "rate") in channel.readback
    assert channel.is_channel


def test_delay_without_a_place_is_refused(graph: Graph) -> None:
    """An element behind the queue needs a place in the topology's `delays`."""
    without = r"reverse\.{}: the topology has no place for it in `delays`, got {}".format
    for places in ({}, {"reverse": ()}):
        bare = dataclasses.replace(graph, delays={"forward": graph.delays["forward"], **places})
        with pytest.raises(SpecError, match=without("delay_ms", 20)):
            refuse(_profile(), bare)
        with pytest.raises(SpecError, match=without("loss", "some")):
            refuse(_profile(delay_ms=0, loss={"percent": 1}), bare)
        with pytest.raises(SpecError, match=without("impairments", "some")):
            refuse(_profile(impairments={"duplicate_percent": 1}), bare)
        assert placement_problems(_profile(delay_ms=0), bare) == []


def test_a_place_has_the_delay_of_one_direction(graph: Graph) -> None:
    """Delays of two directions at one interface are refused: the second would replace the first.

    Without a delay, the other direction may use the interface.
    """
    shared = dataclasses.replace(graph, delays=dict.fromkeys(graph.queues, graph.delays["forward"]))
    with pytest.raises(
        SpecError, match=r"reverse.delay_ms: r2-eth0 has the delay of forward, and an"
    ):
        refuse(_profile(), shared)
    assert placement_problems(_profile(delay_ms=0), shared) == []


def test_a_black_hole_and_a_policer_are_actions_of_one_filter(graph: Graph) -> None:
    """A packet that passes the black hole meets the policer, in front of the queue."""
    black_hole = {"bytes": 1280, "icmp": False}
    policer = {"rate_mbit": 4, "burst_bytes": 15140}
    assert shaper_of(graph, policer=policer, mtu_bytes=black_hole).inner[-1] == (
        "filter add dev r1-eth1 egress matchall action police mtu 1294 conform-exceed drop/pipe "
        "action police rate 4000000bit burst 15140 mtu 65535 conform-exceed drop/pass"
    )


@pytest.mark.parametrize(("place", "kind"), [("own", "drr"), ("priority", "prio bands 2")])
def test_ack_queue_is_htb_over_two_queues(graph: Graph, place: str, kind: str) -> None:
    """HTB keeps the rate without credit; small TCP packets go to band 1, others to band 2."""
    shaper = shaper_of(graph, ack_queue=place, overhead_bytes=-14)
    assert " ".join((*shaper.sizes, *shaper.arguments)) == "stab overhead -14 htb default 1"
    inner = "\n".join(shaper.inner)
    assert "parent 1: classid 1:1 htb rate 10000000bit burst 1 cburst 1" in inner
    assert f"parent 1:1 handle 2: {kind}" in inner
    assert "u32 match ip protocol 6 0xff match u16 0 0xff80 at 2 flowid 2:1" in inner
    assert inner.count("pfifo limit 50") == 2


def test_delay_behind_an_ack_queue_adds_the_transmission(graph: Graph) -> None:
    """The delay's netem adds the transmission time, because HTB releases packets without it."""
    delay = shaper_of(graph, "r2-eth0", ack_queue="own", delay_ms=0)
    assert " ".join(delay.arguments) == "netem limit 1000 delay 0us rate 10000000bit"


def test_ack_queue_needs_a_delay_of_its_own() -> None:
    """If several queues feed one delay, it cannot add the transmission times of each."""
    graph = load_topology(TOPOLOGIES / "client_server.py", {"clients": 2})
    link = {"rate_mbit": 10, "delay_ms": 8, "queue_packets": 50, "ack_queue": "priority"}
    profile = Profile.model_validate(
        {"schema": 1, "title": "t", "directions": {"down": link, "up": link}}
    )
    with pytest.raises(SpecError, match=r"down.ack_queue: takes a direction with one queue"):
        refuse(profile, graph)


@pytest.mark.parametrize(("aqm", "isolation"), [("cake", "flows"), ("cake-flowblind", "flowblind")])
def test_managed_queue(graph: Graph, aqm: str, isolation: str) -> None:
    """Cake keeps the rate itself, and counts overhead from the IP packet, not the frame."""
    shaper = shaper_of(graph, aqm=aqm, overhead_bytes=-4)
    wanted = f"cake bandwidth 10000000bit besteffort {isolation} overhead 10"
    assert " ".join(shaper.arguments) == wanted


def test_fq_codel_has_htb_for_the_rate(graph: Graph) -> None:
    """HTB's burst is one byte: 4 us at 2 Mbit/s, which tc's ticks round to 3968 ns."""
    profile = _profile(aqm="fq_codel", rate_mbit=2)
    shaper = compile_profile(profile, graph)[0]
    rate, queue = shaper.inner
    assert shaper.arguments == ("htb", "default", "1"), "tc refuses a size table that changes none"
    assert rate.endswith("htb rate 2000000bit burst 1 cburst 1")
    assert queue.endswith("handle 2: fq_codel noecn")
    assert profile.directions["forward"].credit_ns == 3968
    assert _profile(rate_mbit=2).directions["forward"].credit_ns == 0


@pytest.mark.parametrize("aqm", ["codel", "pie", "fq_pie", "sfq", "fq", "dualpi2"])
def test_others_under_htb_keep_the_limit(graph: Graph, aqm: str) -> None:
    """Other queues of the kernel are under HTB, and keep the direction's limit of packets."""
    profile = _profile(aqm=aqm, queue_packets=17)
    shaper = compile_profile(profile, graph)[0]
    assert shaper.inner[-1].endswith(f"handle 2: {aqm} limit 17")
    assert profile.directions["forward"].leaves_at_start
    assert shaper.older_tc == (aqm == "dualpi2")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"aqm": "codel"}, "codel limit 17 ecn"),
        ({"aqm": "pie"}, "pie limit 17 ecn"),
        ({"aqm": "fq_codel"}, "fq_codel ecn"),
        ({"aqm": "fq_pie"}, "fq_pie limit 17 ecn"),
        ({"aqm": "red"}, "red limit 25500 avpkt 1500 bandwidth 10000000bit ecn"),
        ({"aqm": "choke"}, "choke limit 17 bandwidth 10000000bit ecn"),
        ({"aqm": "codel", "mark_above_ms": 2.5}, "codel limit 17 ecn ce_threshold 2500us"),
        ({"aqm": "fq_codel", "mark_above_ms": 2.5}, "fq_codel ecn ce_threshold 2500us"),
    ],
)
def test_queues_that_mark(graph: Graph, fields: dict[str, Any], words: str) -> None:
    """A manager is set to mark; red has its limit in bytes, CoDel's threshold is in us."""
    fields = {**fields, "queue_packets": 17, "ecn": True}
    assert profile_problems(_profile(**fields)) == []
    assert shaper_of(graph, **fields).inner[-1].endswith(f"handle 2: {words}")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        *(
            ({"mark_above_ms": 1}, f"mark_above_ms: codel and fq_codel have a threshold, got {aqm}")
            for aqm in ("aqm drop-tail", "aqm red", "aqm cake")
        ),
        *(({"ecn": True}, f"ecn: {aqm} marks nothing") for aqm in ("drop-tail", "sfq")),
        *(({"ecn": True}, f"ecn: {aqm} always marks") for aqm in ("cake", "dualpi2")),
    ],
)
def test_queues_that_do_not_mark(fields: dict[str, Any], sentence: str) -> None:
    """A manager that cannot mark, or has no threshold, is refused with the reason."""
    (aqm,) = re.findall("drop-tail|red|cake|sfq|dualpi2", sentence)
    found = profile_problems(_profile(aqm=aqm, **fields))
    assert found[0].startswith(f"directions.forward.{sentence}")


def test_managed_queue_has_atms_cells() -> None:
    """Beside a managed queue Linux counts ATM's cells, and cells of other sizes are refused."""
    found = profile_problems(_profile(aqm="cake", cell_bytes=48, cell_overhead_bytes=4))[0]
    assert found.startswith("directions.forward.cell_bytes: without a rate_mbit and a drop-tail")
    assert found.endswith("of 48 bytes with 5 of cell_overhead_bytes; got 48 with 4")
    assert profile_problems(_profile(aqm="cake", cell_bytes=48, cell_overhead_bytes=5)) == []


def test_a_flow_has_the_delay_of_its_last_queue(graph: Graph) -> None:
    """A flow is refused if behind its last queue it has no delay, or another direction's."""
    assert behind_problems(_profile(), graph, "h1", "h2") == []
    crossed = dataclasses.replace(
        graph, delays={"forward": graph.delays["reverse"], "reverse": graph.delays["forward"]}
    )
    sentence = (
        "h1 to h2: its last queue is that of forward, but the delay behind it is that of {}".format
    )
    assert behind_problems(_profile(), crossed, "h1", "h2") == [sentence("reverse")]
    elsewhere = dataclasses.replace(graph, delays={"forward": graph.delays["reverse"]})
    none = "its last queue is that of forward, and no delay is behind it"
    (problem,) = behind_problems(_profile(), elsewhere, "h1", "h2")
    assert problem == f"h1 to h2: {none}: add an interface there to delays.forward"
    assert behind_problems(_profile(delay_ms=0), crossed, "h1", "h2") == []


def test_a_delay_queue_has_a_limit_of_32_bits(graph: Graph) -> None:
    """The kernel counts packets in 32 bits, which a fast link's long delay would exceed."""
    shapers = compile_profile(_profile(rate_mbit=100_000, delay_ms=274_000), graph)
    assert [s.arguments[2] for s in shapers if "delay" in s.arguments] == ["4294967295"] * 2
