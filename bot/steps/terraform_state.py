"""A Terraform state that is kept in Git: written into the walk's tree after an apply, and sealed for the next pass.

The tree is made anew in every pass, and a state that is lost with it would be lost for good.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.files import File
from bot.ports import Vault
from bot.ports.store import PlanStore
from bot.steps.contract import StepContext
from bot.steps.terraform_inputs import Inputs
from bot.steps.worktree import join

_PURPOSE = "terraform state in git"


@dataclass(frozen=True, slots=True)
class StateKeeper:
    """Keeps what the last apply of one step left in the tree."""

    store: PlanStore
    vault: Vault

    async def keep(self, files: Mapping[str, File], inputs: Inputs, context: StepContext) -> None:
        """Write the files (paths inside the checkout) into the tree, and keep them for the next pass."""
        if not files:
            return
        content = {
            join(inputs.site.place, path): base64.b64encode(file.data).decode()
            for path, file in files.items()
        }
        sealed = self.vault.seal(json.dumps(content).encode(), _PURPOSE)
        await self.store.keep_bundle(context.promotion.id, _name(context), sealed)
        await self._write(content, context)

    async def restore(self, context: StepContext) -> None:
        """Write what an earlier pass kept into the tree, if it did."""
        if not context.policy.state_in_git:
            return
        sealed = await self.store.get_bundle(context.promotion.id, _name(context))
        if sealed is not None:
            await self._write(json.loads(self.vault.open(sealed, _PURPOSE)), context)

    async def _write(self, content: Mapping[str, str], context: StepContext) -> None:
        await context.tree.put({path: File(base64.b64decode(text)) for path, text in content.items()})


def _name(context: StepContext) -> str:
    return f"{context.alias}/state"
