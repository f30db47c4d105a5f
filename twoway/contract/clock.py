"""The clock of every run: when a guest boots, when connections are set up, when traffic starts."""

# The guest's clock at boot: 2000-01-01 00:00:00 UTC. Traffic starts 30 s later, in virtual
# time, which costs nothing; connections are set up in between, at zero load.
BOOT_NS = 946_684_800_000_000_000
READY_NS = BOOT_NS + 8_000_000_000
CONNECT_NS = BOOT_NS + 10_000_000_000
START_NS = BOOT_NS + 30_000_000_000
# tcpdump's ring hands over a block at the latest after 1 s.
SETTLE_NS = 3_000_000_000
