"""Properties of a link that no check of a run proves, beside the checks that hold."""

from collections.abc import Iterator, Mapping

from twoway.contract.not_proven import NotProven
from twoway.links.delay import ChangingDelay
from twoway.links.dtm import Channel
from twoway.links.element import Elements, Link
from twoway.links.impairments import Impairments
from twoway.links.loss import Loss
from twoway.links.policer import Policer
from twoway.links.queue_limit import QueueLimit


def not_proven(links: Mapping[str, Link]) -> tuple[NotProven, ...]:
    """List what no check proves of some links, by the names of their directions."""
    return tuple(
        NotProven(what=f"{what} ({name})", why=why)
        for name, link in links.items()
        for what, why in _of_link(link)
    )


def copies_hide_losses(elements: Elements) -> bool:
    """Tell whether netem makes copies and loses at random: of either it loses one unseen."""
    impairments, loss = elements.find(Impairments), elements.find(Loss)
    return bool(impairments and impairments.duplicate_percent and loss and not loss.every)


def _of_link(link: Link) -> Iterator[tuple[str, str]]:
    elements, manager = link.elements, link.manager
    channel, impairments = elements.find(Channel), elements.find(Impairments)
    if manager and elements.contains(Policer):
        yield (
            "the share that the policer dropped",
            f"{manager.name} behind it drops packets, too, which look the same",
        )
    if manager and manager.holds_packets:
        yield (
            "whether packets leave as soon as the link is free",
            f"{manager.name} may hold them, by tc's own words",
        )
    if manager and channel and channel.rate and channel.rate.sees_drops:
        yield (
            "when the channel's slots change",
            f"its allocator does not see a packet that {manager.name} drops after it came",
        )
    if manager and elements.contains(QueueLimit):
        yield (
            "which packets the queue's limit dropped",
            "only for a drop-tail queue does a check know what finds it full",
        )
    if copies_hide_losses(elements):
        yield (
            "the share of packets that the link lost, and the kernel's count of all links' losses",
            "of a packet and its copy one may be lost, which leaves no trace",
        )
    if impairments and impairments.jitter_ns and elements.contains(ChangingDelay):
        yield (
            "each packet's delay by the schedule",
            "a packet meets the schedule after its jitter, and captures show the sum alone",
        )
