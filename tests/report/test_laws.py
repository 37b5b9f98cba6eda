"""The section on the law says where its forecast is soft: how low a loss can go at all."""

from dataclasses import replace

from wholestack.report.laws import pareto, settings

from .reading import read


def test_both_asymptotes_forecasts_are_told_with_their_gap_and_the_span_of_the_interval(drawn):
    evidence = drawn("inside").evidence
    laws = replace(evidence.laws, free_asymptote=1.600, fixed_asymptote=1.680)
    words = read(pareto(replace(evidence, laws_rung=laws))).words()
    assert "gives 1.600 with its irreducible loss left free and 1.680 with it fixed" in words
    assert "5.0 % apart" in words
    target = laws.target
    assert f"spans {100 * (target.high - target.low) / target.value:.1f} % in all" in words


def test_the_asymptotes_are_those_of_the_last_laws(drawn):
    evidence = drawn("inside").evidence
    search = replace(evidence.laws_search, free_asymptote=1.111)
    assert "1.111" not in read(pareto(replace(evidence, laws_search=search))).words()
    assert "1.111" in read(pareto(replace(evidence, laws_search=search, laws_rung=None))).words()


def test_the_ladder_is_on_the_front_and_what_the_law_was_fitted_to_is_said(drawn):
    page = read(pareto(drawn("inside").evidence))
    front = next(svg for svg in page.all("svg") if "Pareto front" in svg.attributes["aria-label"])
    assert "ladder (laws' settings) (10)" in front.words()
    assert "fitted to 10 runs with the laws' own settings" in page.words()


def test_without_a_law_nothing_is_said_of_its_asymptote(drawn):
    assert "irreducible" not in read(pareto(drawn("refused").evidence)).words()
    assert "irreducible" not in read(pareto(drawn("interrupted").evidence)).words()


def test_the_rung_s_column_is_what_the_rung_had_and_not_what_laws_refitted_with_it_would_choose(drawn):
    evidence = drawn("inside").evidence
    had = evidence.last("rung").params["width"]
    refitted = tuple(
        replace(law, rung=987, target=654) if law.name == "width" else law for law in evidence.laws_rung.settings
    )
    words = read(settings(replace(evidence, laws_rung=replace(evidence.laws_rung, settings=refitted)))).words()
    assert "654" in words
    assert "987" not in words
    assert str(had) in words
