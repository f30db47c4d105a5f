"""Reports of captures as pages."""
