"""A separate queue for ACKs, tc's remedy for ACK compression."""

from typing import Any, ClassVar, Literal

from twoway.contract.links import ManagedQueue


class AckQueue(ManagedQueue):
    """Two queues, one for ACKs and one for the other packets."""

    FIELD: ClassVar = "ack_queue"
    DESCRIPTION: ClassVar = (
        "where ACKs wait: with data in one first-in-first-out queue, in their own that takes turns "
        "with data's, or in one that goes first; each of two has queue_packets"
    )
    WORDS: ClassVar[Any] = Literal["shared", "own", "priority"]
    USUAL: ClassVar = "shared"
