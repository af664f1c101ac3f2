# %% [markdown]
# # Many targets and the report
#
# One explanation is about one decision. A hundred show what the model has learned. This page explains all test nodes of
# the example, looks at what they have in common, and writes a page that can be sent by mail.

# %%
import butfor

model, data = butfor.example()
targets = data.test_mask.nonzero().flatten()
session = butfor.prepare(model, data)  # model and graph made ready once, for any number of questions
results = session.explain(targets, butfor.Exact(all_smallest=True))
results

# %% [markdown]
# ## In numbers
#
# A list of results becomes a table of polars, or with `"pandas"` of pandas:

# %%
frame = results.to_frame()
frame.group_by("status", "size").len().sort("status", "size")

# %% [markdown]
# The metrics of the paper: what share of the targets has *no* counterfactual (fidelity; low is good), how many edges
# are removed (size), what share of the neighbourhood stays (sparsity), and for graphs whose motifs are known the share
# of the removed edges' ends that lie in a motif (accuracy). `strict_accuracy` is ours: the share of the answers that
# remove only edges inside motifs.

# %%
from butfor import evaluation

metrics = evaluation.evaluate(results, data, session.classes)
for name, value in metrics.values.items():
    print(f"{name:>12}  {value}")

# %% [markdown]
# ## Methods beside each other
#
# The same session can be asked by any number of methods:

# %%
for method in (butfor.Exact(), butfor.Greedy(), butfor.CFGNN(), butfor.RemoveEgo()):
    answers = session.explain(targets, method)
    seconds = sum(answer.seconds for answer in answers) / len(answers)
    print(
        f"{type(method).__name__:>10}: {evaluation.fidelity(answers):.2f} not found, "
        f"{evaluation.explanation_size(answers).mean:.2f} edges, {seconds * 1000:.1f} ms a node"
    )

# %% [markdown]
# ## The report
#
# One HTML file with all of it: a table to search and filter, the picture of each result, all smallest sets, and what
# recurs. It needs neither Python nor a server.

# %%
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
butfor.report(results, folder / "report.html", title="Tree-Cycles")
print(f"{(folder / 'report.html').stat().st_size / 1e6:.1f} MB")

# %% [markdown]
# ![The report](../images/report.png)
#
# [More about the report](../how-to/report.md).
#
# ## Saved, and read again

# %%
results.save(folder / "results.jsonl")
again = butfor.load_results(folder / "results.jsonl")
print(len(again), "results;", next(iter(again.where(targets=[605])), "605 is not among them"))

# %% [markdown]
# ## More of everything
#
# - `jobs=4` searches in four processes, `executor=butfor.Ray()` on a cluster; a worker that dies is replaced, a target
#   that fails becomes a row that says why.
# - `butfor explain ... --out results.jsonl` on the command line goes on where it was interrupted.
# - Graphs of ten million nodes stay on disk: `butfor convert`.
#
# All of it: [many targets, large graphs](../how-to/scale.md).
