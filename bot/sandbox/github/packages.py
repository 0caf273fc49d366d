"""Container images linked to a repository, as far as the `registry_package` event tells of them."""

from dataclasses import dataclass

from bot.sandbox.github.auth import Actor
from bot.sandbox.github.events import Notice, emit
from bot.sandbox.github.records import Json, Repository
from bot.sandbox.github.views.lens import Lens
from bot.sandbox.github.views.people import user
from bot.sandbox.github.world import World


@dataclass(frozen=True, slots=True)
class Package:
    """A pushed image: name without registry and owner, one tag (empty for a child manifest), digest."""

    name: str
    tag: str
    digest: str


def publish(world: World, actor: Actor, repo: Repository, package: Package) -> None:
    """Send `registry_package` with `published`."""

    def build(lens: Lens) -> Json:
        return {"registry_package": _view(lens, actor, repo, package)}

    emit(world, repo, Notice("registry_package", "published", actor), build)


def _view(lens: Lens, actor: Actor, repo: Repository, package: Package) -> Json:
    owner = lens.world.owner(repo)
    head = lens.world.git(repo).ref(f"refs/heads/{repo.default_branch}") or ""
    web = f"{lens.repo_web(repo)}/pkgs/container/{package.name}"
    moment = lens.world.now()
    image = f"ghcr.io/{owner.login.lower()}/{package.name}"
    version = {
        "id": 1,
        "version": package.digest,
        "name": package.digest,
        "description": "",
        "summary": "",
        "package_files": [],
        "installation_command": f"docker pull {image}:{package.tag}",
        "html_url": web,
        "target_commitish": repo.default_branch,
        "target_oid": head,
        "package_url": f"{image}:{package.tag}",
        "created_at": moment,
        "updated_at": moment,
        "metadata": [],
        "container_metadata": {
            "tag": {"name": package.tag, "digest": package.digest},
            "labels": {},
            "manifest": {
                "digest": package.digest,
                "media_type": "application/vnd.oci.image.manifest.v1+json",
            },
        },
        "author": user(lens, actor.account),
    }
    return {
        "id": 1,
        "name": package.name,
        "namespace": owner.login,
        "description": "",
        "ecosystem": "CONTAINER",
        "package_type": "CONTAINER",
        "html_url": web,
        "created_at": moment,
        "updated_at": moment,
        "owner": user(lens, owner),
        "package_version": version,
        "registry": {
            "name": "GitHub CONTAINER registry",
            "type": "CONTAINER",
            "url": image,
            "vendor": "GitHub Inc",
        },
    }
