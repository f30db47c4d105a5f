"""Read capture files into columns."""
