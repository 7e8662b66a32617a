"""Topics of abstracts, with a plot."""

import gzip
import json
from pathlib import Path

import matplotlib.pyplot
from jensen.sklearn import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

file = Path(__file__).resolve().parents[2] / "data" / "arxiv_abstracts" / "abstracts.jsonl.gz"
abstracts = [json.loads(line) for line in gzip.open(file, "rt", encoding="utf-8")]

words = CountVectorizer(stop_words="english", min_df=5, max_df=0.2, token_pattern=r"[a-z]{3,}")
counts = words.fit_transform(abstract["text"] for abstract in abstracts)
topics = LatentDirichletAllocation(6, temper="local=20", max_iter=60, random_state=1).fit(counts)
print(f"{topics.verdict_}; {counts.shape[0]} abstracts, {counts.shape[1]} words, perplexity {topics.perplexity(counts):.0f}")
for number, top in enumerate(topics.top_words(6, words.get_feature_names_out())):
    print(number, *top)

# The share of each topic in each field. The fit did not use the fields.
fields = [abstract["category"].split(".")[0] for abstract in abstracts]
names = sorted(set(fields))
shares = topics.transform(counts)
table = [shares[[field == name for field in fields]].mean(axis=0) for name in names]
figure, axes = matplotlib.pyplot.subplots(figsize=(6, 3))
axes.imshow(table, cmap="Blues", aspect="auto")
axes.set_yticks(range(len(names)), names)
axes.set_xlabel("topic")
figure.savefig("topics.png", dpi=60, bbox_inches="tight")
# In five of six fields, one topic has at least two fifths of the words.
assert sum(row.max() > 0.4 for row in table) >= 5
