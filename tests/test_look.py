"""The look: contrast, styles, page furniture and charts, read back from the file's own XML."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from lxml import etree

from sizing_xlsx.workbook import charts, page
from sizing_xlsx.workbook.styles import Styles, contrast, load_look, style_of, text_pairs, workbook_options

LOOK = load_look()
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
M = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
X14 = "{http://schemas.microsoft.com/office/spreadsheetml/2009/9/main}"
TITLE = "The job needs 15.1 of 85.0 GB"


@pytest.mark.parametrize(("where", "text", "fill"), list(text_pairs(LOOK)))
def test_every_text_is_readable_on_its_fill(where: str, text: str, fill: str) -> None:
    assert contrast(LOOK, text, fill) >= 4.5, where


@pytest.mark.parametrize(
    ("first", "second", "ratio"),
    [
        ("ink", "white", 14.5),
        ("ink", "panel", 13.4),
        ("ink", "bar", 9.1),
        ("quiet", "panel", 5.8),
        ("accent", "white", 7.3),
        ("edge", "white", 3.0),
        ("input_border", "white", 3.4),
        ("no_text", "no_fill", 7.2),
    ],
)
def test_contrast_is_as_published(first: str, second: str, ratio: float) -> None:
    assert contrast(LOOK, first, second) == pytest.approx(ratio, abs=0.051)


def test_only_inputs_are_unlocked() -> None:
    unlocked = {name for name in LOOK["styles"] if not style_of(LOOK, name)["locked"]}
    assert unlocked == {name for name in LOOK["styles"] if name.startswith(("in_", "g_"))}


def test_no_text_on_screen_is_below_10_points() -> None:
    assert min(style_of(LOOK, name)["size"] for name in LOOK["styles"]) == 10


def test_numbers_are_padded_and_have_a_true_minus_and_a_text_section() -> None:
    padded = [code for name, code in LOOK["formats"].items() if re.fullmatch(r"(n|p|gb)\d|pe", name)]
    assert len(padded) == 8
    for code in padded:
        positive, negative, zero, text = code.split(";")
        assert all(part.endswith("_)_)") for part in (positive, negative, zero, text))
        assert negative.startswith('"\u2212"')


@pytest.mark.parametrize(("name", "change"), [("label", {"color": "ink"}), ("label", {"colour": "navy"})])
def test_an_unknown_key_or_colour_is_named(name: str, change: dict[str, str]) -> None:
    with xlsxwriter.Workbook(io.BytesIO()) as workbook:
        workbook.add_worksheet()
        with pytest.raises(ValueError, match=r"color|navy"):
            Styles(workbook, LOOK).variant(name, **change)


def test_equal_styles_share_one_format() -> None:
    with xlsxwriter.Workbook(io.BytesIO()) as workbook:
        workbook.add_worksheet()
        styles = Styles(workbook, LOOK)
        assert styles["r_help"] is styles["r_help"] is styles.variant("r_help", indent=0)
        assert styles["r_help"] is not styles.variant("r_help", indent=2)


def test_kinds_have_a_grid() -> None:
    assert page.column_widths(LOOK, "Sizing") == [3, 30, 26, 8, 18, 18, 33, 33, 2]
    assert page.column_widths(LOOK, "wide", 5) == [3, 38, 14, 14, 14, 2]
    with pytest.raises(ValueError, match="last_column is None"):
        page.column_widths(LOOK, "wide")
    with pytest.raises(ValueError, match="kind is 'sizing'"):
        page.column_widths(LOOK, "sizing")


def test_footer_keeps_a_leading_figure_out_of_the_font_size() -> None:
    assert page.footer(LOOK, "1.0").startswith('&L&"Calibri,Regular"&9 1.0&C')


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """All styles, the strip and the four charts in one file, as its parts."""
    path = tmp_path_factory.mktemp("look") / "look.xlsx"
    write_everything(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_everything(path: Path) -> None:
    with xlsxwriter.Workbook(str(path), workbook_options(LOOK)) as workbook:
        styles = Styles(workbook, LOOK)
        sizing, data = workbook.add_worksheet("Sizing"), workbook.add_worksheet("Chart data")

        def put(row: int, column: int, content: Any, form: Any) -> None:
            sizing.write(row, column, content, form)

        last = page.set_page(sizing, LOOK, kind="Sizing", file_and_version="&F, version 1.0", freeze=(7, 0))
        tiles = [
            page.Tile(1, 1, "Verdict", "Tight", "Only if fragments stay small", kind="verdict"),
            page.Tile(2, 3, "Total to size against", 15.1, "peak 12.8, reserve up to 2.3"),
            page.Tile(6, 6, "Utilisation", 0.19, 0.19, "tile_pct", "gauge"),
        ]
        row = page.strip(
            sizing,
            styles,
            last_column=last,
            title="LoRA",
            sentence="Tight",
            stamp="Version 1.0",
            tiles=tiles,
            put=put,
        )
        row = page.section(sizing, styles, row, last_column=last, name="Model", put=put, number=1, note="1.1")
        for name in LOOK["styles"]:
            put(row, 1, name, styles[name])
            row += 1
        page.data_bar(sizing, styles, (10, 4, 20, 4), maximum=1.6)
        page.own_marks(sizing, styles, (10, 3, 20, 3), "$D11<>$E11")
        page.print_area(sizing, row, last, [12])

        # A: a title as a formula; B: a name and numbers as formulas; C: a name, a number and a missing point.
        data.write_formula(0, 0, '="The job needs "&"15.1 of 85.0 GB"', None, TITLE)
        data.write_row(1, 0, ["Category", "Named", "Other"])
        for at, value in enumerate((1.5, 20.25, 30.0)):
            data.write_string(2 + at, 0, f"As entered: {value}")
            data.write_formula(2 + at, 1, f"={value}", None, value)
        data.write_number(2, 2, 2.5)
        data.write_formula(3, 2, "=NA()", None, "#N/A")
        data.write_blank(4, 2, None, styles["calc3"])
        title, text, x, y = (
            ["Chart data", 0, 0],
            ["Chart data", 2, 0, 4, 0],
            ["Chart data", 2, 1, 4, 1],
            ["Chart data", 2, 2, 4, 2],
        )
        named, other = ["Chart data", 1, 1], ["Chart data", 1, 2]
        points = charts.Points(named, x, y)
        made = [
            charts.memory_by_part(
                workbook,
                LOOK,
                title=title,
                categories=text,
                parts=[charts.Bars(named, x), *[charts.Bars(other, y)] * 4],
            ),
            charts.total_by(
                workbook,
                LOOK,
                title=title,
                x_title="Sequence length, tokens",
                total=points,
                peak=points,
                checkpointed=points,
                capacity=points,
                job=points,
                boundary=charts.Points(other, x, y),
            ),
            charts.predicted_against_measured(
                workbook, LOOK, title=title, exact=points, above=points, below=points, levers=[points] * 8
            ),
            charts.error_by_run(workbook, LOOK, title=title, traced=points, published=points),
        ]
        for at, chart in enumerate(made):
            charts.place(sizing, row + 1 + 20 * at, 1, chart, size=(15.4, 8.2), alt=f"{TITLE}, {at}")


def tree(parts: dict[str, bytes], name: str) -> Any:
    return etree.fromstring(parts[name])


def chart_parts(parts: dict[str, bytes]) -> list[Any]:
    found = [tree(parts, f"xl/charts/chart{number}.xml") for number in (1, 2, 3, 4)]
    assert "xl/charts/chart5.xml" not in parts
    return found


def test_axes_are_shown_and_nothing_is_left_to_defaults(parts: dict[str, bytes]) -> None:
    for chart in chart_parts(parts):
        axes = [*chart.iter(C + "catAx"), *chart.iter(C + "valAx")]
        assert len(axes) == 2
        assert [axis.find(C + "delete").get("val") for axis in axes] == ["0", "0"]
        assert chart.find(C + "roundedCorners").get("val") == "0"
        assert {overlay.get("val") for overlay in chart.iter(C + "overlay")} == {"0"}
        assert len(list(chart.iter(C + "overlay"))) == 1 + len(list(chart.iter(C + "title")))
        assert {smooth.get("val") for smooth in chart.iter(C + "smooth")} <= {"0"}
        assert {font.get("typeface") for font in chart.iter(A + "latin")} == {"Calibri"}
        assert next(chart.iter(C + "legendPos")).get("val") == "b"


def test_title_names_categories_and_values_are_cached(parts: dict[str, bytes]) -> None:
    for chart in chart_parts(parts):
        title = chart.find(f"{C}chart/{C}title")
        assert title.findtext(f".//{C}f") == "'Chart data'!$A$1"
        assert title.findtext(f".//{C}strCache/{C}pt/{C}v") == TITLE
        for series in chart.iter(C + "ser"):
            assert series.findtext(f"{C}tx//{C}strCache/{C}pt/{C}v") in ("Named", "Other")
            values = series.find(C + "val") if series.find(C + "val") is not None else series.find(C + "yVal")
            cached = {pt.get("idx"): pt.findtext(C + "v") for pt in values.iter(C + "pt")}
            assert cached in ({"0": "1.5", "1": "20.25", "2": "30.0"}, {"0": "2.5", "1": "#N/A"})
    bars = chart_parts(parts)[0]
    assert next(bars.iter(C + "cat")).findtext(f".//{C}strCache/{C}pt/{C}v") == "As entered: 1.5"
    scatter = chart_parts(parts)[1]
    assert next(scatter.iter(C + "xVal")).findtext(f".//{C}numCache/{C}pt/{C}v") == "1.5"


def test_elements_stand_in_the_order_of_the_schema(parts: dict[str, bytes]) -> None:
    order = {
        "chartSpace": ["lang", "roundedCorners", "chart", "spPr", "printSettings"],
        "chart": ["title", "autoTitleDeleted", "plotArea", "legend", "plotVisOnly", "dispBlanksAs"],
        "barChart": ["barDir", "grouping", "varyColors", "ser", "gapWidth", "overlap", "axId"],
        "scatterChart": ["scatterStyle", "varyColors", "ser", "axId"],
        "legend": ["legendPos", "legendEntry", "layout", "overlay", "txPr"],
        "title": ["tx", "layout", "overlay", "txPr"],
    }
    for chart in chart_parts(parts):
        for name, expected in order.items():
            for element in chart.iter(C + name):
                seen = [etree.QName(child).localname for child in element]
                assert seen == sorted(seen, key=expected.index), name


def test_series_differ_by_more_than_colour(parts: dict[str, bytes]) -> None:
    bars, total, predicted, error = chart_parts(parts)
    assert [p.get("prst") for p in bars.iter(A + "pattFill")] == ["wdUpDiag"]
    lines = [(d.get("val")) for d in total.iter(A + "prstDash")]
    assert lines == ["solid", "sysDash", "dash", "lgDash"]
    shapes = [s.get("val") for s in predicted.iter(C + "symbol")]
    assert shapes[:3] == ["none"] * 3
    assert len(set(shapes[3:])) == 8
    assert [s.get("val") for s in error.iter(C + "symbol")] == ["diamond", "circle"]
    entry = predicted.find(f".//{C}legendEntry")
    assert (entry.find(C + "idx").get("val"), entry.find(C + "delete").get("val")) == ("2", "1")
    assert [b.get("val") for b in predicted.iter(C + "logBase")] == ["10", "10"]


def test_charts_have_alt_text(parts: dict[str, bytes]) -> None:
    drawing = parts["xl/drawings/drawing1.xml"].decode()
    assert [int(at) for at in re.findall(rf'descr="{re.escape(TITLE)}, (\d)"', drawing)] == [0, 1, 2, 3]


def test_bars_are_solid_and_start_at_zero(parts: dict[str, bytes]) -> None:
    sheet = tree(parts, "xl/worksheets/sheet1.xml")
    basic = list(sheet.iter(M + "dataBar"))
    twins = list(sheet.iter(X14 + "dataBar"))
    assert len(basic) == len(twins) == 2
    assert {(b.get("minLength"), b.get("maxLength")) for b in basic} == {("0", "100")}
    assert {(t.get("gradient"), t.get("axisPosition"), t.get("border")) for t in twins} == {("0", "none", None)}
    assert [b.get("showValue") for b in basic] == ["0", None]
    assert [[v.get("val") for v in b.iter(M + "cfvo")] for b in basic] == [["0", "1"], ["0", "1.6"]]


def test_the_verdict_tile_follows_its_word(parts: dict[str, bytes]) -> None:
    sheet = tree(parts, "xl/worksheets/sheet1.xml")
    rules = [f.text for f in sheet.iter(M + "formula")]
    for word in ("Fits", "Tight", "Does not fit"):
        assert f'$B$5="{word}"' in rules
    assert 'LEFT($B$5,LEN("Check"))="Check"' in rules


def test_sheet_is_protected_without_password_printable_and_unmerged(parts: dict[str, bytes]) -> None:
    sheet = tree(parts, "xl/worksheets/sheet1.xml")
    protection = sheet.find(M + "sheetProtection")
    assert protection.get("sheet") == "1"
    assert protection.get("password") is None
    assert (protection.get("formatColumns"), protection.get("formatRows")) == ("0", "0")
    assert sheet.find(M + "mergeCells") is None
    assert sheet.find(f"{M}sheetViews/{M}sheetView").get("showGridLines") == "0"
    assert float(sheet.find(f"{M}cols/{M}col[2]").get("width")) == pytest.approx(30.71, abs=0.005)
    setup = sheet.find(M + "pageSetup")
    assert (setup.get("orientation"), setup.get("paperSize"), setup.get("fitToHeight")) == (
        "landscape",
        "9",
        "0",
    )
    assert "&P of &N" in sheet.findtext(f"{M}headerFooter/{M}oddFooter")
    names = {n.get("name"): n.text for n in tree(parts, "xl/workbook.xml").iter(M + "definedName")}
    assert names["_xlnm.Print_Titles"] == "Sizing!$1:$7"


def test_cells_without_a_style_are_calibri_ink(parts: dict[str, bytes]) -> None:
    font = tree(parts, "xl/styles.xml").find(f"{M}fonts/{M}font")
    assert font.find(M + "name").get("val") == "Calibri"
    assert font.find(M + "sz").get("val") == "11"
    assert font.find(M + "color").get("rgb") == "FF1F2A37"
