"""Switching an interface's offloads off with the ioctls of `ethtool -K`, without a process."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import socket
import struct

SIOCETHTOOL = 0x8946
# The commands of linux/ethtool.h that read an offload and set it.
COMMANDS = {
    "rx": (0x14, 0x15),
    "tx": (0x16, 0x17),
    "sg": (0x18, 0x19),
    "tso": (0x1E, 0x1F),
    "gso": (0x23, 0x24),
    "gro": (0x2B, 0x2C),
}


def switch_off(interface: str, offloads: list[str]) -> list[str]:
    """Switch offloads of an interface of this namespace off.

    Returns: the offloads that are still on, because the interface does not allow the change.
    Raises: OSError if there is no such interface.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for name in offloads:
            try:
                _ethtool(asked, interface, COMMANDS[name][1])
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    raise
        return [name for name in offloads if _ethtool(asked, interface, COMMANDS[name][0])]


def _ethtool(asked: socket.socket, interface: str, command: int) -> int:
    """Send a struct ethtool_value with data 0; return the data in the answer."""
    value = ctypes.create_string_buffer(struct.pack("=II", command, 0), 8)
    request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
    fcntl.ioctl(asked, SIOCETHTOOL, request)
    data: int = struct.unpack("=II", value.raw)[1]
    return data
