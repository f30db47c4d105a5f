"""What experiments, profiles and topologies say, read and checked."""
