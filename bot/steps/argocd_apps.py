"""Which Applications an Argo CD step is about, and whether their owner lets this Stage change them."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.argocd import AUTHORIZED, Application
from bot.ports import ArgoCD, TerminalError
from bot.steps.contract import StepContext
from bot.steps.options import Options


@dataclass(frozen=True, slots=True)
class AppConfig:
    """One entry of `apps`: a name or a label selector, and the namespace."""

    name: str
    selector: str
    namespace: str
    options: Options

    @property
    def address(self) -> str:
        """What a person calls it."""
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{where}{self.name}" if self.name else f"{where}applications with {self.selector}"


def parse_apps(step: str, options: Options) -> tuple[AppConfig, ...]:
    """The entries of `apps`; raises TerminalError for an unknown address."""
    apps = []
    for item in options.each("apps"):
        selector = render_selector(item.part("selector")) if item.has("selector") else ""
        app = AppConfig(item.address("name"), selector, item.address("namespace"), item)
        if not app.name and not app.selector:
            raise TerminalError(f"{step}: an entry of apps needs a name or a selector")
        apps.append(app)
    return tuple(apps)


def render_selector(selector: Options) -> str:
    """A label selector in Kubernetes' text form."""
    labels = selector.part("matchLabels")
    terms = [f"{key}={labels.address(key)}" for key in sorted(labels.values)]
    for expression in selector.each("matchExpressions"):
        key, operator = expression.address("key"), expression.address("operator")
        values = ",".join(expression.addresses("values"))
        match operator:
            case "In":
                terms.append(f"{key} in ({values})")
            case "NotIn":
                terms.append(f"{key} notin ({values})")
            case "Exists":
                terms.append(key)
            case "DoesNotExist":
                terms.append(f"!{key}")
            case _:
                raise TerminalError(
                    f"{selector.where}: the operator {operator!r} is not one of In, NotIn, Exists, DoesNotExist"
                )
    return ",".join(terms)


async def find_apps(argocd: ArgoCD, server: str, app: AppConfig) -> tuple[Application, ...]:
    """The Applications of an entry, none if there are none (yet)."""
    if app.name:
        found = await argocd.get_application(server, app.name, namespace=app.namespace)
        return () if found is None else (found,)
    return tuple(await argocd.list_applications(server, app.selector, namespace=app.namespace))


def why_unauthorized(application: Application, context: StepContext) -> str:
    """Why this Stage may not change an Application, empty if it may."""
    wanted = f"{context.promotion.project}:{context.promotion.stage}"
    allowed = [part.strip() for part in application.annotations.get(AUTHORIZED, "").split(",")]
    if wanted in allowed:
        return ""
    said = application.annotations.get(AUTHORIZED)
    have = f"its annotation says {said!r}" if said else "it has no such annotation"
    return (
        f"the Application {application.name} does not let Stage {wanted} change it: {have}. Its owner must set the "
        f'annotation {AUTHORIZED}: "{wanted}"'
    )


def application_key(application: Application) -> str:
    """The name under which a step remembers an Application."""
    return f"{application.namespace}/{application.name}"
