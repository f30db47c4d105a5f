"""The clock of every run: times of boot, connecting and traffic."""

# The guest's clock at boot: 2000-01-01 00:00:00 UTC. Traffic starts 30 s later, in virtual
# time, which costs nothing; connections are set up in between, at zero load.
BOOT_NS = 946_684_800_000_000_000
READY_NS = BOOT_NS + 8_000_000_000
CONNECT_NS = BOOT_NS + 10_000_000_000
START_NS = BOOT_NS + 30_000_000_000
# From the end of traffic to the end of the captures: tcpdump's ring may keep a block for 1 s.
SETTLE_NS = 3_000_000_000
