"""The backends of this machine by name, with what they run on built if it is not."""

from twoway.backends.backend import Backend
from twoway.backends.host import make_native
from twoway.backends.qemu import ACCELERATORS, Qemu, best_accelerator
from twoway.backends.uml import Uml
from twoway.errors import TwowayError
from twoway.guest.build import Guest, find_guest
from twoway.guest.stock_kernel import build_stock, find_stock
from twoway.progress import Steps


def find_backend(name: str) -> Backend:
    """The backend that `--backend` names.

    Raises: TwowayError if what it takes is not there.
    """
    if name == "uml":
        return Uml(built_guest())
    if name == "native":
        return make_native()
    stock = find_stock()
    if stock is None:
        with Steps() as steps:
            stock = build_stock(steps)
    chosen = {f"qemu-{each}": each for each in ACCELERATORS}.get(name)
    return Qemu(stock, chosen or best_accelerator(stock))


def built_guest() -> Guest:
    """The guest of user-mode Linux.

    Raises: TwowayError if it is not built.
    """
    guest = find_guest()
    if guest is None:
        raise TwowayError("the guest is not built", "`make setup` (or `twoway build`) builds it")
    return guest
