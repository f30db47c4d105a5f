"""A separate queue for ACKs, tc's remedy for ACK compression."""

from typing import Any, ClassVar, Literal

from twoway.contract.links import ManagedQueue


class AckQueue(ManagedQueue):
    """Two queues, one for ACKs and one for the other packets."""

    FIELD: ClassVar = "ack_queue"
    TITLE: ClassVar = "A queue for ACKs"
    DESCRIPTION: ClassVar = (
        "the queue in which ACKs wait: one first-in-first-out queue with the data; their "
        "own, served in turn with the data's; or their own, served first. Each of two queues "
        "has queue_packets"
    )
    WORDS: ClassVar[Any] = Literal["shared", "own", "priority"]
    USUAL: ClassVar = "shared"
