"""What a measured run is worth: pages, figures, and the reproduction report on all papers."""
