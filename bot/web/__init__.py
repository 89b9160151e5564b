"""HTTP for programs: agents post reports, the reconciler reads them, Prometheus scrapes metrics."""
