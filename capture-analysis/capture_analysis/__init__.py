"""Ack compression, efficiency and queues, measured from packet captures."""
