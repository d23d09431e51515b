package budget

// Tokens is a bucket from which retries or failures take tokens and into which
// successes put some back: gRPC's retry throttling and the retry quota of the AWS
// SDKs. Each client has a bucket of its own (gRPC: for each server name); those of
// several are read as one that holds theirs together, which is right as long as
// they fare alike, and else runs empty later than the worst of them.
type Tokens struct {
	Size    float64 // tokens of a full bucket, per client
	Reserve float64 // tokens with which nothing may be retried any more, per client
	// What each failure and each repeat takes. PerTimeout is what a repeat takes in
	// place of PerRepeat if the attempt before it got no answer in time.
	PerFailure, PerRepeat, PerTimeout float64
	PerSuccess                        float64 // what each success gives back
	Clients                           int     // what the bucket is multiplied by
}

// GRPCTokens is gRPC's retryThrottling (gRFC A6): a failure takes one token, a success
// gives tokenRatio back, and nothing is retried from half of maxTokens down. A6 has
// no defaults; 10 and 0.1 are those of its example. A failure is what A6 takes for one
// by the usual retryable statuses: an answer such as NOT_FOUND takes nothing.
func GRPCTokens() Tokens {
	return Tokens{Size: 10, Reserve: 5, PerFailure: 1, PerSuccess: 0.1, Clients: 1}
}

// AWSTokens is the retry quota of the AWS SDKs' standard mode: 500 tokens, of which a
// retry takes 5 and one after a timeout 10, and a success gives one back; nothing is
// retried with fewer than a retry takes. Two things stay out of a log's second. Which
// repeats came after a timeout is not known: spent takes them all as having come after
// another failure, and high as many as possible as having come after one. And the SDKs
// give back what a retry took when it succeeds, where this gives back one.
func AWSTokens() Tokens {
	return Tokens{Size: 500, Reserve: 4, PerRepeat: 5, PerTimeout: 10, PerSuccess: 1, Clients: 1}
}

// Sized is such a bucket for so many clients that holds size tokens and gets perSuccess
// back; of both 0 leaves what its authors say. gRPC's reserve is half of any size.
func (g Tokens) Sized(size, perSuccess float64, clients int) Tokens {
	if size > 0 {
		if g.PerFailure > 0 {
			g.Reserve = size / 2
		}
		g.Size = size
	}
	if perSuccess > 0 {
		g.PerSuccess = perSuccess
	}
	g.Clients = clients
	return g
}

// Name is "tokens".
func (Tokens) Name() string { return "tokens" }

func (g Tokens) allowance(Counts, int) float64 {
	return (g.Size - g.Reserve) * float64(g.Clients)
}

func (g Tokens) spent(c Counts, _ int) float64 {
	return g.PerFailure*float64(c.Failed) + g.PerRepeat*float64(c.Repeats) - g.PerSuccess*float64(c.Success)
}

func (g Tokens) high(c Counts, _ int) float64 {
	repeats := c.Repeats + c.Unattributable
	s := g.PerFailure*float64(c.Failed) + g.PerRepeat*float64(repeats) - g.PerSuccess*float64(c.Success)
	if g.PerTimeout > g.PerRepeat {
		s += (g.PerTimeout - g.PerRepeat) * float64(min(repeats, c.Gone))
	}
	return s
}

func (g Tokens) variance(c Counts, _ int) float64 {
	return g.PerFailure*g.PerFailure*float64(c.Failed) + g.PerRepeat*g.PerRepeat*float64(c.Repeats) + g.PerSuccess*g.PerSuccess*float64(c.Success)
}

func (g Tokens) bucket() float64 { return g.Size * float64(g.Clients) }
