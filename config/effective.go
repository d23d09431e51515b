package config

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// WriteEffective writes every key with the value in force, as a file that Load
// reads as the same configuration: paths are as resolved, and $ is doubled.
// Secrets are written as a fixed word, so they do not survive the trip.
func (c *Config) WriteEffective(w io.Writer) error {
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(encode(reflect.ValueOf(*c))); err != nil {
		return fmt.Errorf("write effective configuration: %w", err)
	}
	if err := e.Close(); err != nil {
		return fmt.Errorf("write effective configuration: %w", err)
	}
	return nil
}

// encode is the reverse of decoder.value.
func encode(v reflect.Value) *yaml.Node {
	switch t := v.Interface().(type) {
	case time.Duration:
		return plainNode(formatDuration(t))
	case Size:
		return plainNode(t.String())
	case Secret:
		return textNode(t.String())
	case Endpoint:
		return textNode(t.String())
	}
	copied := reflect.New(v.Type())
	copied.Elem().Set(v)
	short, oneOf := copied.Interface().(scalarStruct)
	if oneOf {
		if text, ok := short.scalar(); ok {
			return textNode(text)
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for i := range v.NumField() {
			name, f := v.Type().Field(i).Tag.Get("yaml"), v.Field(i)
			if name == "" || f.Kind() == reflect.Pointer && f.IsNil() || oneOf && f.IsZero() {
				continue
			}
			n.Content = append(n.Content, textNode(name), encode(f))
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for i := range v.Len() {
			n.Content = append(n.Content, encode(v.Index(i)))
		}
		if k := v.Type().Elem().Kind(); v.Len() == 0 || k != reflect.Struct {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			// Keys are not expanded, so their $ stays single.
			key := textNode("")
			setText(key, k.String())
			n.Content = append(n.Content, key, encode(v.MapIndex(k)))
		}
		if len(keys) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.String:
		return textNode(v.String())
	case reflect.Bool:
		return plainNode(strconv.FormatBool(v.Bool()))
	case reflect.Int:
		return plainNode(strconv.FormatInt(v.Int(), 10))
	case reflect.Float64:
		text := strconv.FormatFloat(v.Float(), 'f', -1, 64)
		if len(text) > 20 {
			text = strconv.FormatFloat(v.Float(), 'e', -1, 64)
		}
		return plainNode(text)
	}
	panic("config: no encoding of " + v.Type().String())
}

func plainNode(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

func textNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	setText(n, strings.ReplaceAll(text, "$", "$$"))
	return n
}

// setText gives n a text, in quotes unless it is a plain word: then no text can
// be read back as something else.
func setText(n *yaml.Node, text string) {
	n.Tag, n.Value, n.Style = "!!str", text, yaml.DoubleQuotedStyle
	if bare(text) && text[0] != '-' {
		n.Style = 0
	}
}
