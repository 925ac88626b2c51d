// Renders a chart as `helm template` does, by Helm's own packages, and prints the manifests.
//
// Usage: render -kube-version V [-f FILE]... [-set KEY=VALUE]... NAME CHART
//
// Helm's command would bring the clients of Kubernetes and of registries along, which take most of
// the time of its build.
package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
)

// Values of an option that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

func (l *list) Set(text string) error {
	*l = append(*l, text)
	return nil
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	var files, sets list
	options := flag.NewFlagSet("render", flag.ContinueOnError)
	kube := options.String("kube-version", "", "version of Kubernetes, such as v1.37.0")
	options.Var(&files, "f", "file with values; the later one counts")
	options.Var(&sets, "set", "a value that counts more than those of files")
	if err := options.Parse(arguments); err != nil {
		return err
	}
	if options.NArg() != 2 {
		return fmt.Errorf("NAME and CHART are wanted, not %q", options.Args())
	}
	manifests, err := rendered(options.Arg(0), options.Arg(1), *kube, files, sets)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		base := path.Base(name)
		if strings.HasPrefix(base, "_") || base == "NOTES.txt" {
			continue
		}
		fmt.Fprintf(out, "---\n# Source: %s\n%s\n", name, manifests[name])
	}
	return nil
}

// The text of each template of a chart.
func rendered(name, folder, kube string, files, sets list) (map[string]string, error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		later, err := chartutil.ReadValues(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		values = chartutil.CoalesceTables(later, values)
	}
	for _, set := range sets {
		if err := strvals.ParseInto(set, values); err != nil {
			return nil, err
		}
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(kube)
	if err != nil {
		return nil, err
	}
	capabilities.KubeVersion = *version
	wanted := chart.Metadata.KubeVersion
	if wanted != "" && !chartutil.IsCompatibleRange(wanted, version.Version) {
		return nil, fmt.Errorf("the chart wants Kubernetes %s, which is not %s", wanted, version.Version)
	}
	if err := chartutil.ProcessDependenciesWithMerge(chart, values); err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: name, Namespace: "default", Revision: 1, IsInstall: true}
	given, err := chartutil.ToRenderValues(chart, values, release, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, given)
}
