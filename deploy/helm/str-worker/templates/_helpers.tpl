{{/* Parts that several templates use. */}}

{{- define "str-worker.selector" -}}
app: str-worker
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "str-worker.labels" -}}
{{ include "str-worker.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "str-worker.metadata" -}}
name: {{ .Release.Name }}
labels:
  {{- include "str-worker.labels" . | nindent 2 }}
{{- end }}

{{/* Whether workers keep artifacts on a volume. */}}
{{- define "str-worker.hasArtifactVolume" -}}
{{- if eq (default "" .Values.config.ARTIFACT_SERVICE_TYPE) "filesystem" }}yes{{ end }}
{{- end }}

{{/* The user of each option: bubblewrap starts for no other user than root with a capability. */}}
{{- define "str-worker.podSecurity" -}}
{{- if has .Values.option (list "user-namespaces" "no-capabilities") -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
{{- else -}}
runAsUser: 0
runAsGroup: 0
{{- end }}
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
{{- if ne .Values.option "development-privileged" }}
seccompProfile:
  type: Localhost
  localhostProfile: {{ .Values.seccompProfile }}
{{- end }}
{{- end }}

{{- define "str-worker.containerSecurity" -}}
{{- if eq .Values.option "development-privileged" -}}
privileged: true
{{- else -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
{{- if eq .Values.option "user-namespaces" }}
procMount: Unmasked
{{- end }}
capabilities:
  drop: [ALL]
  {{- if eq .Values.option "capabilities" }}
  # Each has its reason in docs/kubernetes.md.
  add: [CHOWN, DAC_OVERRIDE, KILL, SETGID, SETUID, SYS_PTRACE]
  {{- end }}
{{- end }}
{{- end }}
