"""Which words the sheets want of the templates: every text by its place, and what may stand in its braces.

A template that lacks one, has one that no sheet reads, or says something in braces that no sheet fills in, is
refused before anything is written. In VOCABULARY a word is a text by its place, "tiles.total" the entry total of the
table tiles; "columns[7]" is a list of seven texts, "pass{count}" may say {count}, and "levers*" is whatever the
sheet itself reads and checks: live sentences (words.py), rows of data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from ..formula.domains import nearest

VOCABULARY: Mapping[str, str] = {
    "book": """
        check_input stamp{version,date} footer{file,version} date{day,month,year} months[12]
        prompt.message{what,right} prompt.refused{right} prompt.or_word{right,word} prompt.or_empty{right}
        provenance.version provenance.data provenance.data_of{date} provenance.formulas provenance.formulas_of{hash}
        provenance.presets provenance.presets_of{hash} provenance.hash{digest} provenance.own
        provenance.own_file{file,digest,what} provenance.own_rows{count} provenance.more_files{count}
        provenance.step_traces
        own_runs.name own_runs.one_used own_runs.used{count} own_runs.told{file,used,count}
        own_runs.told_why{file,used,count,why} own_runs.why{count,reason} own_runs.skipped.other_job
        own_runs.skipped.other_backend own_runs.skipped.not_run own_runs.skipped.failed own_runs.skipped.no_formulas
        own_runs.skipped.unknown_setting own_runs.skipped.replaced
    """,
    "functions": """
        title sentence columns[5] job_arguments job job_columns[3] providers.lambda providers.udf
        providers.addin errors names lookups lists list_columns[4] jobs
    """,
    "start": """
        sentence evidence* answers* title{title} evidence_name guide* sheets.name sheets.headers.question
        sheets.headers.get sheets.headers.enter sheets.headers.sheet sheets.rows* figures.name figures.headers.term
        figures.headers.meaning figures.headers.why figures.headers.value figures.rows* legend.name legend.rows*
        legend.answers_name legend.answers.yes legend.answers.no legend.answers.unsure
    """,
    "sizing": """
        not_traced no_item scenario{name}
        tiles.verdict tiles.no_verdict tiles.total tiles.usable tiles.headroom tiles.utilisation tiles.checks
        checks.pass{count} checks.fail{failed,count,ending} checks.endings[2] checks.corrected checks.warning
        checks.own{count} checks.fine
        items.name items.columns[7] items.peak[2] items.reserve[2] items.reserve_reduces items.total[2]
        items.shown_outside[2]
        moments.name moments.note moments.columns[6] moments.sets moments.below
        boundary.name boundary.note boundary.columns[6] boundary.batch[2] boundary.sequence[2]
        charts.name
    """,
    "chart_data": """
        title sentence check unit parts[4] parts_alt bars.usable* bars.entered* bars.without* bars.with*
        axis.ends{input} axis.title{input,unit} axis.alt{input} axis.total axis.peak axis.checkpointed axis.capacity
        axis.job axis.largest
        jobs.entered jobs.checkpointed jobs.plain jobs.average jobs.point{input,number}
        jobs.point_checkpointed{input,number}
    """,
    "validation": """
        rows title card stamp limits[2] note own_note workings levers*
        not_traced what_shown column_groups[5] columns[20] calls.right calls.wrong calls.undecided
        lever_names.baseline lever_names.batch_size lever_names.seq_len lever_names.lora_rank
        lever_names.checkpointing lever_names.adapter_placement lever_names.base_precision lever_names.combined
        lever_names.optimizer lever_names.checkpointing_batch lever_names.checkpointing_seq lever_names.precision
        lever_names.one_card lever_names.fsdp lever_names.zero lever_names.ddp
        lever_names.own
        settings.baseline settings.False settings.True settings.adam settings.adam8bit settings.checkpointing
        settings.both settings.upper{count}
        typed.run[3]{longest} typed.lever[3]{longest} typed.setting[3]{longest} typed.measured_peak[3]{largest}
        typed.measured_reserved[3]{largest} typed.trace_peak[3]{largest} typed.trace_reserved[3]{largest}
        typed.outcome[3]{completed,out_of_memory} typed.source[3]{longest}
        strip.none_wrong strip.some_wrong{count} strip.ended{completed,failed} strip.traced strip.published
        strip.median{share} strip.nothing strip.calls strip.calls_right{count,all}
        strip.calls_other{undecided,wrong} strip.reserve strip.never_low{count,all} strip.reserve_band{low,high}
        strip.trace strip.no_trace strip.limits
        charts.measured charts.traced_error charts.published_error charts.lines[4] charts.exact charts.band
        charts.below charts.traced charts.published charts.alt charts.errors_alt charts.on_line
        charts.off_line{share} charts.nothing charts.errors{traced,published}
        beside.run beside.traced[2] beside.published[2] beside.above[2] beside.trace[2] beside.outcome[2]
        beside.call[2] beside.faults[2] beside.fault[2]{label} beside.outcomes
    """,
    "public_runs": """
        name near* limits[2] note not_predicted workings notes
        not_traced ran_out explained[2] column_groups[3] columns[13] group{run,group}
        strip.predicted strip.predicted_count{count,all} strip.predicted_note strip.median strip.median_note
        strip.near strip.near_count{count,all} strip.near_note{share} strip.worst strip.worst_note{run}
        strip.unexplained strip.unexplained_note{share} strip.limits
        beside.run beside.explained[2] beside.error[2] beside.near[2] beside.far[2]
        together.name together.count together.predicted together.median together.share together.near together.worst
        together.worst_run together.unexplained together.unexplained_error
    """,
    "effort": """
        title{title} units* formats* sentences* steps* tables*
        tiles* warnings* parts*
        budget.name budget.note* budget.columns* budget.total budget.rows* budget.all*
        speeds.name speeds.note speeds.columns[7] speeds.one{run,model} speeds.several{run,model,cards}
        speeds.source{source} speed_methods*
    """,
    "served": """
        tiles.users tiles.pool tiles.headroom tiles.use items_table.name items_table.columns[7] items* tables*
        cards.title cards.smallest_set cards.cheapest_set cards.none_fits cards.none cards.set{cards,card}
        cards.suggested.memory{figure} cards.suggested.cost{figure} cards.card cards.note cards.below
        cards.workings cards.answers[2] cards.counts[3]
        cards.columns.card cards.columns.fewest cards.columns.usable cards.columns.users{cards} cards.columns.price
        cards.columns.price_of_these cards.columns.price_source cards.beside.name[2] cards.beside.row[2]
        cards.beside.holds[2] cards.beside.shipped[2] cards.beside.source[2] cards.beside.price[2] cards.beside.fits[2]
        cards.beside.memory[2] cards.beside.cost[2]
        models.title models.largest models.largest_note models.count models.count_note models.none models.none_fits
        models.model models.note models.workings models.columns[9] models.answers[4] models.beside.row[2]
        models.beside.holds[2] models.beside.fits[2]
        charts.title charts.sentence charts.check charts.unit charts.parts[5] charts.parts_alt charts.bars.usable*
        charts.bars.needed* charts.bars.taken* charts.context charts.prompt charts.lines[4] charts.axis charts.users_alt
        charts.point{number}
        runs.title runs.none runs.run runs.groups[4] runs.columns[19] runs.explained{source} runs.unexplained{source}
        runs.notes[3] runs.workings runs.answers[4] runs.counts[2] runs.strip.runs runs.strip.runs_note
        runs.strip.called runs.strip.called_note runs.strip.weights runs.strip.pool runs.strip.step
        runs.strip.worst_note runs.beside.called[2] runs.beside.weights[2] runs.beside.pool[2] runs.beside.step[2]
        runs.chart.columns[7] runs.chart.line runs.chart.exact runs.chart.band runs.chart.below runs.chart.explained
        runs.chart.unexplained runs.chart.alt
        summary.cost_name summary.cost_lines*
    """,
    "checks": """
        title pass empty error as_text traced_sum published_sum engine_sum not_judged wrong_input{input,typed,allowed}
        no_day
        choice.name choice.allowed{as_typed} choice.wrong{name,typed,allowed}
        inputs.name inputs.columns[9] rules.name rules.columns[9] time_inputs.name time_rules.name
        cost_inputs.name cost_rules.name
        warnings.name warnings.columns[9] results.name results.columns[9] results.failed results.count
        results.time_failed results.cost_failed results.warnings results.first_fault
        results.first_time_fault results.first_warning
    """,
    "overrides": """
        title sentence columns[6] job[2] installation[2] count source{source} source_evidence{source,evidence}
    """,
    "summary": """
        job* limits title{title} verdict* way_on* tiles.verdict tiles.total tiles.usable tiles.headroom job_name
        items_table.name items_table.headers.name items_table.headers.memory items_table.headers.unit
        items_table.headers.share items_table.headers.reduces items_table.peak items_table.reserve items_table.total
        items_table.chart
        moments_table.name moments_table.note moments_table.sets moments_table.below moments_table.missing
        assumptions.name assumptions.lines* evidence.name evidence.lines*
        provenance.name provenance.line{version,data,formulas,presets} provenance.own
        signed.date signed.by signed.date_help signed.by_help signed.allowed signed.longest*
    """,
    "notes_sheet": "title sentence{subject} covers provenance",
    "workings": """
        title sentence columns[6] constants[2] what_if[2] sentences[2] constant_source{source,evidence}
        term_source{meaning,source} sentence_source boundaries.title boundaries.sentence
        subjects.units subjects.run subjects.card subjects.shape subjects.parameters subjects.model subjects.methods
        subjects.adapters subjects.stack subjects.form subjects.resident subjects.layer subjects.mask subjects.kept
        subjects.activations subjects.published subjects.traced subjects.items subjects.allocator subjects.verdict
        subjects.tokens subjects.adapter_work subjects.encoder_work subjects.full_work subjects.whole_cards
        subjects.cards subjects.all_trained subjects.model_traffic subjects.base_traffic subjects.stage_costs
        subjects.work subjects.throughput subjects.checkpoints subjects.hours subjects.communication subjects.price
        subjects.rent subjects.own subjects.budget subjects.figures subjects.recipe subjects.sharding subjects.stages
        subjects.exchange subjects.state
        subjects.loss subjects.moments subjects.reserve subjects.taken subjects.requests subjects.engine
        subjects.parallel subjects.weights subjects.kv_cache subjects.pool subjects.serving_work
        subjects.serving_speed subjects.serving_replicas subjects.serving_cost subjects.serving_told
    """,
    "what_if": "title sentence job broken[2] results*",
    "search": """
        title heading{input,question} columns[4] step{number} answer checkpointing questions.free_batch_size
        questions.highest_lora_rank questions.most_adapter_layers
    """,
    "record": "title sentence workbook facts[3] opened own packed part{number}",
    "reference": """
        presets.title presets.sentence presets.name presets.source presets.source_of_all{source} presets.why
        presets.own{file} presets.own_form{file,source}
        presets.own_reason{file,reason} presets.no_source presets.not_offered presets.not_counted
        presets.not_counted_columns[3]
        gpus.title gpus.sentence gpus.gpu gpus.note gpus.unknown gpus.sources gpus.source{figure,source}
        gpus.columns.vendor[2] gpus.columns.architecture[2] gpus.columns.marketed_gb[2] gpus.columns.usable_bytes[2]
        gpus.columns.usable_gb[2] gpus.columns.usable_mib[2] gpus.columns.driver_total_bytes[2] gpus.columns.ecc[2]
        gpus.columns.ecc_memory_share[2] gpus.columns.cuda[2] gpus.columns.emulates_bf16[2] gpus.columns.mig_slice[2]
        gpus.columns.matmul_workspace_bytes[2]
        gpus.columns.bandwidth_gb_per_s[2] gpus.columns.fp32_tflops[2] gpus.columns.tf32_dense_tflops[2]
        gpus.columns.bf16_dense_tflops[2] gpus.columns.fp8_dense_tflops[2] gpus.columns.int8_dense_tops[2]
        gpus.columns.power_w[2] gpus.columns.interconnect[2] gpus.columns.interconnect_gb_per_s[2]
        gpus.columns.price_usd_per_hour[2] gpus.columns.price_as_of[2] gpus.columns.release_year[2]
        gpus.typed.price_usd_per_hour[3] gpus.typed.price_as_of[3]
        gpus.sources_of.usable_basis gpus.sources_of.memory_source gpus.sources_of.bandwidth_source
        gpus.sources_of.flops_source gpus.sources_of.precision_source gpus.sources_of.ecc_source
        gpus.sources_of.power_source gpus.sources_of.price_source gpus.sources_of.interconnect_source
        gpus.sources_of.matmul_workspace_source
    """,
}
LONGEST_PIECE = 255  # characters of one text in a formula: what stands between braces may become one
_WORD = re.compile(r"([\w.]+)(\*)?(?:\[(\d+)\])?(?:\{([\w,]+)\})?")
_BRACES = re.compile(r"\{([^{}]*)\}")


class Word(NamedTuple):
    """One text that a sheet wants. texts: of a list of texts, 0 for a single one. slots: what braces may name."""

    texts: int
    slots: tuple[str, ...]
    free: bool


@cache
def words_of(section: str) -> Mapping[str, Word]:
    """The words of a section by their places."""
    return parsed_words(VOCABULARY[section])


@cache
def parsed_words(specs: str) -> Mapping[str, Word]:
    """Words as VOCABULARY writes them, by their places."""
    found = {}
    for spec in specs.split():
        match = _WORD.fullmatch(spec)
        assert match, f"{spec} is no word"
        place, free, count, slots = match.groups()
        found[place] = Word(int(count or 0), tuple((slots or "").split(",")) if slots else (), bool(free))
    return found


def check_words(section: str, table: Mapping[str, Any], where: str, wanted: Mapping[str, Word] | None = None) -> None:
    """Refuse words that are missing, that no sheet reads, or whose braces nothing fills: ValueError, one sentence.

    where: the file and the section, as the sentence names them. wanted: the words; those of VOCABULARY unless given.
    """
    wanted = words_of(section) if wanted is None else wanted
    found = dict(_places(table, wanted))
    for place in found:
        if place not in wanted:
            raise ValueError(f"{where}: {place} is no text that a sheet shows{nearest(place, tuple(wanted))}")
    for place, word in wanted.items():
        if place not in found:
            raise ValueError(f"{where}: {place} is missing; it must be {_kind(word)}")
        if not word.free:
            _check_word(found[place], word, f"{where}: {place}")


def _places(table: Mapping[str, Any], wanted: Mapping[str, Word], before: str = "") -> Iterator[tuple[str, Any]]:
    """Every text of a table with its place; tables that are wanted as they are count as one."""
    for key, value in table.items():
        place = before + key
        if isinstance(value, Mapping) and place not in wanted:
            yield from _places(value, wanted, place + ".")
        else:
            yield place, value


def _kind(word: Word) -> str:
    return "there" if word.free else f"a list of {word.texts} texts" if word.texts else "a text"


def _check_word(value: Any, word: Word, where: str) -> None:
    texts = value if isinstance(value, list) and word.texts else [value]
    if len(texts) != (word.texts or 1) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{where} is {str(value)[:60]!r}; it must be {_kind(word)}")
    for text in texts:
        said = _BRACES.findall(text)
        if "{" in (plain := _BRACES.sub("", text)) or "}" in plain or not set(said) <= set(word.slots):
            may = ", ".join(f"{{{slot}}}" for slot in word.slots)
            right = f"in braces it may say {may}" if may else "nothing in braces is filled in there"
            raise ValueError(f"{where} says {text!r}; {right}")
        if word.slots and any(len(piece) > LONGEST_PIECE for piece in _BRACES.split(text)[::2]):
            raise ValueError(f"{where} has more than {LONGEST_PIECE} characters in one piece, which no formula holds")
