"""An independent packet-level model of Zhang, Shenker and Clark's network (1991).

Two nodes, a link with a drop-tail queue in each direction, and senders at both: `sender` has
Tahoe's window and a fixed one, `timers` Linux's and 4.3BSD's retransmission timers, `network` the
receivers, queues and links, `outcome` the metrics of a modelled run. All times are integer
nanoseconds; no code is shared with the testbed, and nothing is taken from a run.
"""
