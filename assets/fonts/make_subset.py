#!/usr/bin/env python3
"""Makes the font of the Chinese texts: the glyphs that src/text/zh_CN.po uses, of Noto Sans CJK SC.

    pip install fonttools
    python3 assets/fonts/make_subset.py /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc

The font is in Debian's fonts-noto-cjk and at https://github.com/notofonts/noto-cjk. Run it again when a test says that
the font lacks a glyph.
"""

import sys
from pathlib import Path

from fontTools import subset

HERE = Path(__file__).resolve().parent
CATALOGUE = HERE.parents[1] / "src" / "text" / "zh_CN.po"
# Punctuation of Chinese text, full-width forms, and the language's own name, which the window shows in any language.
ALWAYS = "、。〈〉《》「」『』【】〔〕！（），－：；？～…—“”‘’·语言中文"


def main():
    wanted = {c for c in CATALOGUE.read_text("utf-8") + ALWAYS if ord(c) > 0x7F}
    options = subset.Options()
    options.font_number = 2  # of the collection: Noto Sans CJK SC
    options.layout_features = []
    options.hinting = False
    options.desubroutinize = True
    options.name_IDs = [0, 1, 2, 4, 5, 6, 13, 14]
    options.drop_tables += ["BASE", "VORG", "vhea", "vmtx", "DSIG"]
    font = subset.load_font(sys.argv[1], options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(sorted(wanted)))
    subsetter.subset(font)
    target = HERE / "NotoSansSC-subset.otf"
    subset.save_font(font, str(target), options)
    print(f"{target.name}: {len(wanted)} characters, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
