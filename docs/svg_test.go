package docs_test

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// drawing is an SVG picture in the making. Colours are chosen to be read on white and black.
type drawing struct {
	b             strings.Builder
	width, height int
}

func newDrawing(width, height int) *drawing { return &drawing{width: width, height: height} }

// box draws a rectangle with a text in its middle, where there is one.
func (d *drawing) box(x, y, w, h int, fill, text string) {
	fmt.Fprintf(&d.b, `<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s" stroke="#5a6472"/>`+"\n", x, y, w, h, fill)
	if text != "" {
		d.text(x+w/2, y+h/2+4, "middle", text)
	}
}

func (d *drawing) text(x, y int, anchor, text string) {
	fmt.Fprintf(&d.b, `<text x="%d" y="%d" text-anchor="%s">`, x, y, anchor)
	_ = xml.EscapeText(&d.b, []byte(text))
	d.b.WriteString("</text>\n")
}

func (d *drawing) arrow(x1, y1, x2, y2 int) {
	fmt.Fprintf(&d.b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#5a6472" marker-end="url(#head)"/>`+"\n", x1, y1, x2, y2)
}

// tick draws a thin line down.
func (d *drawing) tick(x, y1, y2 int, colour string) {
	fmt.Fprintf(&d.b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`+"\n", x, y1, x, y2, colour)
}

func (d *drawing) String() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="12">
<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#5a6472"/></marker></defs>
<rect width="100%%" height="100%%" fill="#ffffff"/>
%[3]s</svg>
`, d.width, d.height, d.b.String())
}
