"""Endpoints that connect emulated devices to hosts: in process, pseudo-terminal, TCP, USB."""
