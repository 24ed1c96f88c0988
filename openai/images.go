package openai

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

func hasImage(b *agentkernel.ContentBlock) bool {
	return b.Type == agentkernel.ContentImage && b.Image != nil && (len(b.Image.Data) > 0 || b.Image.URL != "")
}

// imageURL returns the image's address: a data URL where the image is given by its bytes.
func imageURL(image *agentkernel.Image) string {
	if len(image.Data) == 0 {
		return image.URL
	}
	return "data:" + mimeType(image) + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
}

// mimeType returns the image's type, found from its bytes where it is not given.
func mimeType(image *agentkernel.Image) string {
	if image.MIMEType != "" {
		return image.MIMEType
	}
	if len(image.Data) > 0 {
		return http.DetectContentType(image.Data)
	}
	if data, ok := strings.CutPrefix(image.URL, "data:"); ok {
		kind, _, _ := strings.Cut(data, ",")
		kind, _, _ = strings.Cut(kind, ";")
		return kind
	}
	return ""
}

// describe says in words what cannot be shown: kind and size, never the address.
func describe(image *agentkernel.Image) string {
	what := "image"
	if kind := mimeType(image); kind != "" {
		what = kind + " image"
	}
	if n := len(image.Data); n > 0 {
		what += fmt.Sprintf(" of %d bytes", n)
	}
	return what
}

// notShown stands for an image at an endpoint that takes none.
func notShown(image *agentkernel.Image) sentPart {
	return sentPart{text: fmt.Sprintf("[%s: not shown, this endpoint takes no images]", describe(image))}
}
