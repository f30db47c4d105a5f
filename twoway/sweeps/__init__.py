"""Many runs: on all cores, or on a lab's workers."""
