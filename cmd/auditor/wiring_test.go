package main

import (
	"testing"

	"github.com/targetside/auditor/aggregate/budget"
	"github.com/targetside/auditor/config"
)

// A budget of which only the model is configured is as its authors have it.
func TestDefaultBudgetsAreTheAuthors(t *testing.T) {
	for text, grant := range map[string]budget.Grant{
		"model: ratio": budget.DefaultRatio(), "model: concurrency": budget.DefaultConcurrency(), "model: rate": budget.DefaultRate(),
		"model: tokens": budget.GRPCTokens(), "model: tokens, tokens: aws": budget.AWSTokens(),
	} {
		c, err := config.Parse("auditor.yaml", []byte("budget: {"+text+"}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if all, _ := (&loaded{Config: c}).budgets(); all != budget.DefaultModel(grant) {
			t.Errorf("%s: %+v, want %+v", text, all, budget.DefaultModel(grant))
		}
	}
}
