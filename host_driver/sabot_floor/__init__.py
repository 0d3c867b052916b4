"""Many tables on NATS JetStream: publisher, archive and wall (docs/floor.md)."""
