"""The text that Prometheus reads, held to its rules more strictly than Prometheus does."""
# X8
import re

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.e+-]+|NaN|[+-]Inf)')
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


def check(text):
    """The samples by name and labels. Fails at what is wrong."""
    samples, family, kind, families = {}, None, None, set()
    assert text.endswith("\n"), "the last line has no end"
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert len(line.split()) > 3 and family not in families, f"no help, or twice: {line}"
            families.add(family)
            _, word, name, kind = next(lines).split()
            assert (word, name) == ("TYPE", family) and kind in SUFFIXES, f"no type behind {line}"
            assert (kind == "counter") == family.endswith("_total"), f"{family} is a {kind}"
            continue
        found = SAMPLE.fullmatch(line)
        assert found, f"not a sample: {line}"
        name, labels, value = found.groups()
        assert name in [family + suffix for suffix in SUFFIXES[kind]], f"{name} stands under {family}"
        assert (name, labels) not in samples, f"twice: {line}"
        samples[name, labels] = float(value)
        assert kind == "gauge" or float(value) >= 0, line
    for name in {name[:-len("_bucket")] for name, _ in samples if name.endswith("_bucket")}:
        buckets = [value for (of, _), value in samples.items() if of == name + "_bucket"]
        assert buckets == sorted(buckets), f"{name} is not cumulative"
        assert buckets[-1] == samples[name + '_bucket', 'le="+Inf"'] == samples[name + "_count", None], name
    return samples
