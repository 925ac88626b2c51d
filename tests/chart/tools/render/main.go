// Renders a chart as `helm template` does, by Helm's own packages, and prints the manifests.
//
// Usage: render -kube-version V [-f FILE]... [-set KEY=VALUE]... [-set-file KEY=FILE]... [-notes | -lint] NAME CHART
//
// CHART is a folder or a package. -notes prints what `helm install` says at the end, -lint what `helm lint` finds fault
// with, and -package FOLDER makes a package of the chart, as `helm package` does, and prints its path.
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
	"helm.sh/helm/v3/pkg/lint"
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
	var files, sets, setFiles list
	options := flag.NewFlagSet("render", flag.ContinueOnError)
	kube := options.String("kube-version", "", "version of Kubernetes, such as v1.37.0")
	options.Var(&files, "f", "file with values; the later one counts")
	options.Var(&sets, "set", "a value that counts more than those of files")
	options.Var(&setFiles, "set-file", "a value whose text is that of a file; counts most")
	notes := options.Bool("notes", false, "print the notes alone")
	linted := options.Bool("lint", false, "print what the linter says")
	folder := options.String("package", "", "make a package of the chart in this folder")
	if err := options.Parse(arguments); err != nil {
		return err
	}
	if options.NArg() != 2 {
		return fmt.Errorf("NAME and CHART are wanted, not %q", options.Args())
	}
	name, place := options.Arg(0), options.Arg(1)
	if *folder != "" {
		return packaged(place, *folder, out)
	}
	values, err := given(files, sets, setFiles)
	if err != nil {
		return err
	}
	version, err := chartutil.ParseKubeVersion(*kube)
	if err != nil {
		return err
	}
	if *linted {
		for _, message := range lint.AllWithKubeVersion(place, values, "default", version).Messages {
			fmt.Fprintln(out, message)
		}
		return nil
	}
	manifests, err := rendered(name, place, *version, values)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		base := path.Base(name)
		if strings.HasPrefix(base, "_") || (base == "NOTES.txt") != *notes {
			continue
		}
		if *notes {
			fmt.Fprint(out, manifests[name])
			continue
		}
		fmt.Fprintf(out, "---\n# Source: %s\n%s\n", name, manifests[name])
	}
	return nil
}

// A package of the chart in a folder.
func packaged(place, folder string, out io.Writer) error {
	chart, err := loader.Load(place)
	if err != nil {
		return err
	}
	made, err := chartutil.Save(chart, folder)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, made)
	return nil
}

// The values that the options give, in Helm's order: files, then texts, then texts out of files.
func given(files, sets, setFiles list) (map[string]any, error) {
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
	read := func(name []rune) (any, error) {
		text, err := os.ReadFile(string(name))
		return string(text), err
	}
	for _, set := range setFiles {
		if err := strvals.ParseIntoFile(set, values, read); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// The text of each template of a chart.
func rendered(name, place string, kube chartutil.KubeVersion, values map[string]any) (map[string]string, error) {
	chart, err := loader.Load(place)
	if err != nil {
		return nil, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = kube
	wanted := chart.Metadata.KubeVersion
	if wanted != "" && !chartutil.IsCompatibleRange(wanted, kube.Version) {
		return nil, fmt.Errorf("the chart wants Kubernetes %s, which is not %s", wanted, kube.Version)
	}
	if err := chartutil.ProcessDependenciesWithMerge(chart, values); err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: name, Namespace: "default", Revision: 1, IsInstall: true}
	whole, err := chartutil.ToRenderValues(chart, values, release, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, whole)
}
