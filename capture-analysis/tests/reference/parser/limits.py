"""What no real capture exceeds; clib has the same limits."""

# More VLAN tags and MPLS labels together, or more IPv6 extension headers, are no real packet.
MOST_TAGS = 8
MOST_EXTENSION_HEADERS = 8
# A capture with more connections is a port scan or hostile, and is read as far as this.
MOST_FLOWS = 1 << 22
# So many connections between the same ends are told apart by their VLANs.
MOST_VLANS = 64
# RFC 7323, 2.3: a greater shift count is taken as 14.
MOST_WINDOW_SCALE = 14
