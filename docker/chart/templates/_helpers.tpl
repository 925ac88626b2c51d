{{- define "shardmerge.name" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "shardmerge.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "shardmerge.labels" -}}
{{ include "shardmerge.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- /* Of Kafka and Connect: what Strimzi names its pods, Services and topics by. */ -}}
{{- define "shardmerge.cluster" -}}
{{- .Values.strimzi.clusterName | default (include "shardmerge.name" .) -}}
{{- end -}}

{{- /* Constraints of .constraints; one without a labelSelector gets .labels. */ -}}
{{- define "shardmerge.spread" -}}
{{- $labels := .labels -}}
{{- range .constraints }}
- {{ (hasKey . "labelSelector" | ternary . (set (deepCopy .) "labelSelector" (dict "matchLabels" $labels))) | toJson }}
{{- end }}
{{- end -}}

{{- define "shardmerge.image" -}}
{{- $of := .image -}}
{{- if $of.digest -}}{{ $of.repository }}@{{ $of.digest }}
{{- else -}}{{ $of.repository }}:{{ $of.tag | default .root.Chart.AppVersion }}{{- end -}}
{{- end -}}

{{- define "shardmerge.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}{{ .Values.serviceAccount.name | default (include "shardmerge.name" .) }}
{{- else -}}{{ .Values.serviceAccount.name | default "default" }}{{- end -}}
{{- end -}}

{{- /* Of Spark's driver: it may start executors. */ -}}
{{- define "shardmerge.sparkAccount" -}}
{{- $given := .Values.sink.sparkApplication.serviceAccount -}}
{{- if $given.create -}}{{ $given.name | default (printf "%s-spark" (include "shardmerge.name" .)) }}
{{- else -}}{{ required "sink.sparkApplication.serviceAccount.name is empty: without create it names an account that may start executors" $given.name }}{{- end -}}
{{- end -}}

{{- /* The probe of Spark's driver: it begins when the startup probe of a Deployment would give up. */ -}}
{{- define "shardmerge.driverAlive" -}}
{{- $start := .Values.sink.startupProbe -}}
{{- $delay := mul ($start.periodSeconds | default 10) ($start.failureThreshold | default 3) -}}
{{- $asked := dict "httpGet" (dict "path" "/metrics" "port" 9401) "initialDelaySeconds" $delay -}}
{{- merge (deepCopy .Values.sink.livenessProbe) $asked | toYaml -}}
{{- end -}}

{{- define "shardmerge.configMap" -}}
{{- .Values.existingConfigMap | default (printf "%s-pipeline" (include "shardmerge.name" .)) -}}
{{- end -}}

{{- /* The variables of a part: its passwords, and its own env. */ -}}
{{- define "shardmerge.env" -}}
{{- $part := .part -}}
- {name: SHARDMERGE_LOG_FORMAT, value: {{ .root.Values.logFormat | quote }}}
- {name: HOME, value: /tmp}
{{- if has $part (list "sink" "validator") }}
# Spark would keep Iceberg's jar in the home that Java finds in the list of users, whatever HOME says.
- {name: SHARDMERGE_SPARK_IVY, value: /tmp/ivy}
{{- end }}
{{- range .root.Values.passwords }}
{{- if has $part .parts }}
- name: {{ .variable }}
  valueFrom: {secretKeyRef: {name: {{ .secret | quote }}, key: {{ .key | quote }}}}
{{- end }}
{{- end }}
{{- with (index .root.Values $part).env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "shardmerge.mounts" -}}
{{- $part := .part -}}
- {name: pipeline, mountPath: /etc/shardmerge/pipeline.toml, subPath: pipeline.toml, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- range $at, $file := .root.Values.files }}
{{- if has $part $file.parts }}
- {name: file-{{ $at }}, mountPath: {{ $file.path | quote }}, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{- define "shardmerge.volumes" -}}
{{- $part := .part -}}
- name: pipeline
  configMap: {name: {{ include "shardmerge.configMap" .root | quote }}}
- name: tmp
  emptyDir: {{ (index .root.Values $part).tmp | default dict | toJson }}
{{- range $at, $file := .root.Values.files }}
{{- if has $part $file.parts }}
- name: file-{{ $at }}
  secret: {secretName: {{ $file.secret | quote }}, defaultMode: 0440}
{{- end }}
{{- end }}
{{- end -}}

{{- define "shardmerge.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "shardmerge.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* What pods of a part have in common, besides containers and volumes. */ -}}
{{- define "shardmerge.pod" -}}
{{- $of := index .root.Values .part -}}
serviceAccountName: {{ include "shardmerge.serviceAccount" .root | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $of.terminationGracePeriodSeconds }}
securityContext:
  {{- include "shardmerge.podSecurity" . | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $of.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $of.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $of.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $of.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- include "shardmerge.spread" (dict "constraints" . "labels" (include "shardmerge.selector" $ | fromYaml)) | nindent 2 }}
{{- end }}
{{- with $of.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "shardmerge.podMeta" -}}
labels:
  {{- include "shardmerge.labels" . | nindent 2 }}
annotations:
  # A pod reads the pipeline file when it starts: a new file needs new pods.
  shardmerge/pipeline: {{ .root.Values.pipeline | sha256sum }}
  {{- with (index .root.Values .part).podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "shardmerge.budget" -}}
{{- $of := index .root.Values .part -}}
{{- if $of.podDisruptionBudget.enabled }}
{{- if has (toString $of.podDisruptionBudget.maxUnavailable) (list "0" "0%") }}
{{- fail (printf "%s.podDisruptionBudget.maxUnavailable is 0: no node with such a pod could be drained" .part) }}
{{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "shardmerge.name" .root }}-{{ .part }}
  labels:
    {{- include "shardmerge.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ $of.podDisruptionBudget.maxUnavailable }}
  # Pods that are not ready, because Kafka is away, would otherwise keep their nodes from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "shardmerge.selector" . | nindent 6 }}
{{- end }}
{{- end -}}

{{- /* Prometheus' job is named by the Service's label: alerts go by it. */ -}}
{{- define "shardmerge.service" -}}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "shardmerge.name" .root }}-{{ .part }}
  labels:
    {{- include "shardmerge.labels" . | nindent 4 }}
    shardmerge/job: shardmerge-{{ .part }}
spec:
  selector:
    {{- .selector | default (include "shardmerge.selector" .) | nindent 4 }}
  ports: [{name: http, port: {{ .port }}, targetPort: {{ .port }}}]
{{- end -}}

{{- /* A Deployment of one pod that runs a command of the CLI, with its Service and budget. Besides .root, .part and .port it takes .image, .command, .options and .resources. Two pods would do the same work twice. */}}
{{- define "shardmerge.command" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "shardmerge.name" .root }}-{{ .part }}
  labels:
    {{- include "shardmerge.labels" . | nindent 4 }}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector:
    matchLabels:
      {{- include "shardmerge.selector" . | nindent 6 }}
  template:
    metadata:
      {{- include "shardmerge.podMeta" . | nindent 6 }}
    spec:
      {{- include "shardmerge.pod" . | nindent 6 }}
      containers:
        - name: {{ .part }}
          image: {{ include "shardmerge.image" (dict "root" .root "image" .image) }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          workingDir: /tmp
          args: {{ concat .command (list "--pipeline" "/etc/shardmerge/pipeline.toml" "--metrics-host" "0.0.0.0" "--metrics-port" (toString .port)) .options | toJson }}
          env:
            {{- include "shardmerge.env" . | nindent 12 }}
          ports: [{name: http, containerPort: {{ .port }}}]
          startupProbe:
            httpGet: {path: /metrics, port: http}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 90
          livenessProbe:
            httpGet: {path: /metrics, port: http}
            periodSeconds: 20
            timeoutSeconds: 10
            failureThreshold: 6
          resources: {{ toYaml .resources | nindent 12 }}
          securityContext:
            {{- include "shardmerge.containerSecurity" . | nindent 12 }}
          volumeMounts:
            {{- include "shardmerge.mounts" . | nindent 12 }}
      volumes:
        {{- include "shardmerge.volumes" . | nindent 8 }}
{{ include "shardmerge.service" . }}
{{- include "shardmerge.budget" . }}
{{- end -}}
