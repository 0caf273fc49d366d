"""Lockstep: one pull request per Stage for Terraform and Kubernetes changes that ship together."""

__version__ = "0.1.0"
