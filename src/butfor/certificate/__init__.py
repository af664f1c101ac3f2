"""Proofs that are written down, and a checker that shares no code with the search that found them."""

from butfor.certificate.check import Checked, Refused
from butfor.certificate.record import Certificate, read_certificates

__all__ = ["Certificate", "Checked", "Refused", "read_certificates"]
