package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agentkernel-go/agentkernel"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

const toolName = "calculator"

type question struct {
	Expression string `json:"expression" jsonschema:"for example (6 + 1) * 7 ^ 2 or sqrt(2) / 3"`
}

// calculator is a tool that does arithmetic. What is wrong with an expression is the call's
// error result, from which the model learns.
func calculator() agentkernel.Tool {
	tool := agentkernel.MustTool(toolName,
		"Works out an arithmetic expression to 15 digits: numbers, + - * / % ^, parentheses, the constants "+
			names(constants)+" and the functions "+names(functions)+".",
		func(_ context.Context, in question) (string, error) { return calculate(in.Expression) })
	tool.ReadOnly = func(json.RawMessage) bool { return true }
	tool.ConcurrencySafe = func(json.RawMessage) bool { return false } // quick; and steps come in the order of the calls
	return tool
}

// maxExpression bounds an expression in bytes, and with it the depth of its tree.
const maxExpression = 1000

var errDivision = errors.New("division by zero")

// calculate works out an expression. The parser reads a language that can do more; of its
// tree only numbers and what connects numbers count.
func calculate(expression string) (string, error) {
	if len(expression) > maxExpression {
		return "", fmt.Errorf("the expression has %d bytes, and may have %d", len(expression), maxExpression)
	}
	tree, err := parser.Parse(expression)
	if wrong, ok := errors.AsType[*file.Error](err); ok {
		return "", fmt.Errorf("column %d: %s", wrong.Column+1, wrong.Message)
	}
	if err != nil {
		return "", err
	}
	x, err := value(tree.Node)
	if err != nil {
		return "", err
	}
	return strconv.FormatFloat(x+0, 'g', 15, 64), nil // + 0: there is no -0
}

// value works out a node. Every value within an expression is a finite number.
func value(node ast.Node) (x float64, err error) {
	switch n := node.(type) {
	case *ast.IntegerNode:
		x = float64(n.Value)
	case *ast.FloatNode:
		x = n.Value
	case *ast.IdentifierNode:
		var known bool
		if x, known = constants[n.Value]; !known {
			return 0, fmt.Errorf("%s is unknown: the constants are %s", n.Value, names(constants))
		}
	case *ast.UnaryNode:
		x, err = unary(n)
	case *ast.BinaryNode:
		x, err = binary(n)
	case *ast.BuiltinNode: // a function whose name the parser knows
		x, err = call(n.Name, n.Arguments)
	case *ast.CallNode:
		x, err = call(n.Callee.String(), n.Arguments)
	default:
		return 0, fmt.Errorf("%s is not arithmetic", node)
	}
	if err == nil && (math.IsInf(x, 0) || math.IsNaN(x)) {
		err = fmt.Errorf("%s is no number, or too large for one", node)
	}
	return x, err
}

func unary(n *ast.UnaryNode) (float64, error) {
	x, err := value(n.Node)
	switch n.Operator {
	case "+":
		return x, err
	case "-":
		return -x, err
	}
	return 0, fmt.Errorf("the operator %s is not arithmetic", n.Operator)
}

func binary(n *ast.BinaryNode) (float64, error) {
	x, err := value(n.Left)
	if err != nil {
		return 0, err
	}
	y, err := value(n.Right)
	if err != nil {
		return 0, err
	}
	switch n.Operator {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "/", "%":
		if y == 0 {
			return 0, errDivision
		}
		if n.Operator == "%" {
			return math.Mod(x, y), nil
		}
		return x / y, nil
	case "^", "**":
		if x == 0 && y < 0 {
			return 0, errDivision
		}
		return math.Pow(x, y), nil
	}
	return 0, fmt.Errorf("the operator %s is not arithmetic", n.Operator)
}

func call(name string, arguments []ast.Node) (float64, error) {
	fn, known := functions[name]
	switch {
	case !known:
		return 0, fmt.Errorf("%s is unknown: the functions are %s", name, names(functions))
	case len(arguments) != 1:
		return 0, fmt.Errorf("%s takes one number", name)
	}
	x, err := value(arguments[0])
	return fn(x), err
}

var constants = map[string]float64{"pi": math.Pi, "e": math.E}

var functions = map[string]func(float64) float64{
	"abs": math.Abs, "ceil": math.Ceil, "floor": math.Floor, "round": math.Round, "sqrt": math.Sqrt,
	"exp": math.Exp, "ln": math.Log, "log10": math.Log10,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan,
}

// names are the keys of a table, in their order.
func names[T any](table map[string]T) string {
	return strings.Join(slices.Sorted(maps.Keys(table)), ", ")
}
