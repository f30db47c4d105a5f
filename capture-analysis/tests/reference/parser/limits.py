"""Limits that no real capture exceeds; clib has the same."""

# Limits of VLAN tags and MPLS labels together, and of IPv6 extension headers.
MOST_TAGS = 8
MOST_EXTENSION_HEADERS = 8
# A capture with more connections is a port scan or hostile, and is read up to this number.
MOST_FLOWS = 1 << 22
# Number of connections between the same ends that VLANs distinguish.
MOST_VLANS = 64
# RFC 7323, 2.3: a greater shift count is taken as 14.
MOST_WINDOW_SCALE = 14
