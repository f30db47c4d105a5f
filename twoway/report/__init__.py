"""Reports: a run's page and figures, and the report on all papers."""
