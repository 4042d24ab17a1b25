"""The dashboard: pages in the browser over the views of `runtime`."""
