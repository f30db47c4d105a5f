"""Reading and checking experiments, link profiles and topologies."""
