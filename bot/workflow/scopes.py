"""The expressions of one Promotion, fed with the facts that they may read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.codec import decode_value
from bot.domain.freight import Freight, FreightName, FreightStatus
from bot.domain.model import Stage, Step, Variable
from bot.domain.promotion import Promotion, StepStatus
from bot.domain.values import Unknown, Value
from bot.expressions.errors import ExpressionError
from bot.expressions.facts import DataFacts, FreightFacts, PromotionFacts, SecretData, StepFacts, StepMeta
from bot.expressions.scopes import (
    StepExpressions,
    VerificationFacts,
    decide_run,
    evaluate_arguments,
    evaluate_config,
    evaluate_variables,
)
from bot.ports import Secrets, Store, TerminalError
from bot.workflow.configuration import Configuration
from bot.workflow.evaluation import Progress

_SHARED = "kargo-shared-resources"


@dataclass(frozen=True, slots=True)
class PromotionEvaluator:
    """Evaluates the steps of one Promotion.

    `now()` is the time at which the Promotion was made, before and after the merge alike: so what a reviewer sees is
    what is done.
    """

    promotion: Promotion
    facts: PromotionFacts

    def condition(self, step: Step, progress: Progress) -> bool | Unknown:
        """Whether a step runs."""
        if progress.failed and not step.condition:
            return False
        try:
            return decide_run(self.facts, _step_facts(step, progress), self._texts(step))
        except ExpressionError as error:
            raise TerminalError(f"the condition of {step.alias}: {error}") from error

    def config(self, step: Step, progress: Progress) -> Value:
        """A step's config, evaluated."""
        try:
            return evaluate_config(self.facts, _step_facts(step, progress), self._texts(step))
        except ExpressionError as error:
            raise TerminalError(f"the config of {step.alias}: {error}") from error

    def environment(self, variables: Sequence[Variable]) -> Mapping[str, Value]:
        """Variables of a policy, evaluated."""
        texts = StepExpressions(variables=tuple(variables))
        try:
            return evaluate_variables(self.facts, StepFacts(alias=""), texts)
        except ExpressionError as error:
            raise TerminalError(f"planEnv of the ReviewPolicy: {error}") from error

    def _texts(self, step: Step) -> StepExpressions:
        return StepExpressions(
            variables=self.promotion.variables,
            step_variables=step.variables,
            condition=step.condition,
            config=step.config,
        )


@dataclass(frozen=True, slots=True)
class Evaluators:
    """Makes the evaluator of a Promotion from what is known now. `page` is the bot's own address."""

    configuration: Configuration
    store: Store
    secrets: Secrets
    page: str

    async def of(self, promotion: Promotion) -> PromotionEvaluator:
        """The evaluator of one Promotion."""
        project = promotion.project
        stage = self.configuration.stage(project, promotion.stage)
        facts = PromotionFacts(
            project=project,
            stage=promotion.stage,
            promotion=promotion.id,
            actor=promotion.actor,
            rollback=promotion.rollback,
            ui_base_url=self.page,
            freight_name=promotion.freight.name,
            freight_alias=promotion.freight.alias,
            freight_origin=promotion.freight.origin.name,
            freight=self._freight(project, stage, promotion.collection),
            data=await self._data(project),
            now=promotion.follows.previewed_at if promotion.follows is not None else promotion.created_at,
        )
        return PromotionEvaluator(promotion, facts)

    async def arguments(
        self, stage: Stage, freight: Sequence[FreightName], now: datetime
    ) -> Mapping[str, str]:
        """The arguments of a Stage's verification of this Freight; raises ExpressionError naming the argument."""
        project, verification = stage.metadata.namespace, stage.verification
        known = [await self.store.get_freight(project, name) for name in freight]
        facts = VerificationFacts(
            project=project,
            stage=stage.metadata.name,
            freight=self._freight(project, stage, tuple(item[0] for item in known if item is not None)),
            data=await self._data(project),
            now=now,
        )
        arguments = verification.arguments if verification is not None else ()
        return evaluate_arguments(facts, stage.variables, arguments)

    def _freight(self, project: str, stage: Stage | None, freight: tuple[Freight, ...]) -> FreightFacts:
        houses = self.configuration.pipeline.warehouses
        return FreightFacts(
            requests=stage.requested_freight if stage is not None else (),
            warehouses={name: house for (owner, name), house in houses.items() if owner == project},
            freight=freight,
        )

    async def _data(self, project: str) -> DataFacts:
        known = await self.store.list_freight(project)
        statuses: dict[str, FreightStatus] = {freight.name: status for freight, status in known}
        return DataFacts(
            secrets=_SecretsOf(self.secrets, project),
            shared_secrets=_SecretsOf(self.secrets, _SHARED),
            config_maps=_ConfigMapsOf(self.secrets, project),
            shared_config_maps=_ConfigMapsOf(self.secrets, _SHARED),
            freight=statuses,
            stage_metadata=await self._metadata(project),
        )

    async def _metadata(self, project: str) -> Mapping[str, Mapping[str, Value]]:
        names = [stage.metadata.name for stage in self.configuration.stages_in_order(project)]
        found: dict[str, dict[str, Value]] = {}
        for name in names:
            record = await self.store.get_stage(project, name)
            found[name] = {key: decode_value(value) for key, value in record.metadata.items()}
        return found


def _step_facts(step: Step, progress: Progress) -> StepFacts:
    metas = tuple(_meta(alias, status, progress) for alias, status in progress.statuses.items())
    return StepFacts(alias=step.alias, outputs=progress.outputs, metas=metas)


def _meta(alias: str, status: StepStatus | None, progress: Progress) -> StepMeta:
    tolerated = alias in progress.tolerated
    if status is not None:
        return StepMeta(alias, status.value, continue_on_error=tolerated)
    if tolerated or alias in progress.uncertain:
        return StepMeta(alias, Unknown(f"known after step: {alias}"), continue_on_error=tolerated)
    # It must succeed, or what comes after it is never reached.
    return StepMeta(alias, StepStatus.SUCCEEDED.value)


@dataclass(frozen=True, slots=True)
class _SecretsOf(Mapping[str, SecretData]):
    """The Secrets of a project, read only when an expression names them."""

    secrets: Secrets
    project: str

    def __getitem__(self, name: str) -> SecretData:
        found = self.secrets.secret(self.project, name)
        if found is None:
            raise KeyError(name)
        return SecretData(found, generic=True)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _ConfigMapsOf(Mapping[str, Mapping[str, str]]):
    """The ConfigMaps of a project, read only when an expression names them."""

    secrets: Secrets
    project: str

    def __getitem__(self, name: str) -> Mapping[str, str]:
        found = self.secrets.config_map(self.project, name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
