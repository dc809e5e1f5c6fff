#!/usr/bin/env python3
"""Turns what a program printed into an SVG picture of a terminal: picture.py < text > picture.svg"""
import html
import sys

FONT, LINE, MARGIN = 13, 18, 14


def main() -> None:
    lines = sys.stdin.read().rstrip("\n").split("\n")
    width = MARGIN * 2 + int(max(map(len, lines)) * FONT * 0.61)
    height = MARGIN * 2 + LINE * len(lines)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">')
    print(f'<rect width="{width}" height="{height}" rx="6" fill="#16181d"/>')
    print(f'<g font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="{FONT}" fill="#d8dce4">')
    for number, line in enumerate(lines):
        colour = ' fill="#7ec699"' if line.startswith("$ ") else ""
        y = MARGIN + LINE * number + FONT
        print(f'<text x="{MARGIN}" y="{y}" xml:space="preserve"{colour}>{html.escape(line)}</text>')
    print("</g></svg>")


main()
