"""Many runs held against the papers that their experiments come from: one site, one JSON file."""
