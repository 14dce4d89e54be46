"""Writers of one catalog-managed table beside a faulty catalog, by seeds."""
