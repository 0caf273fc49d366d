"""A simulated Argo CD: its REST API, its life cycle of Applications, and a page that shows them."""

from bot.sandbox.argocd.argocd import ArgoCD
from bot.sandbox.argocd.controller import QUICK, ArgoFaults, Timing
from bot.sandbox.argocd.objects import NewApplication

__all__ = ["QUICK", "ArgoCD", "ArgoFaults", "NewApplication", "Timing"]
