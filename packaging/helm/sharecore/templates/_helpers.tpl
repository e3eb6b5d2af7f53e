{{- define "sharecore.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "sharecore.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "sharecore.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sharecore.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sharecore.selector" -}}
app.kubernetes.io/name: {{ include "sharecore.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sharecore.labels" -}}
{{ include "sharecore.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "sharecore.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sharecore.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "sharecore.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}

{{- define "sharecore.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "sharecore.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* security protocol of the listener */}}
{{- define "sharecore.protocol" -}}
{{- $sasl := not (empty .Values.sasl.mechanisms) -}}
{{- if and .Values.tls.secret $sasl -}}SASL_SSL
{{- else if .Values.tls.secret -}}SSL
{{- else if $sasl -}}SASL_PLAINTEXT
{{- else -}}PLAINTEXT
{{- end -}}
{{- end -}}

{{/* default bootstrap server of the exporter and the scaler */}}
{{- define "sharecore.bootstrap" -}}
{{- printf "%s:%d" (include "sharecore.fullname" .) (int .Values.listener.port) -}}
{{- end -}}

{{/* "true" if the broker's home is a bucket */}}
{{- define "sharecore.isHome" -}}
{{- if and (eq .Values.mode "broker") .Values.broker.home.url -}}true{{- end -}}
{{- end -}}

{{/* Fail if the standby could claim the bucket before the broker that has the data. `lookup` finds nothing in `helm template`. */}}
{{- define "sharecore.checkHome" -}}
{{- $name := include "sharecore.fullname" . -}}
{{- $url := .Values.broker.home.url -}}
{{- $pods := lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- with lookup "v1" "ConfigMap" .Release.Namespace $name -}}
{{- $settings := splitList "\n" (index .data "server.properties") -}}
{{- $names := has (printf "sharecore.bucket.url=%s" $url) $settings -}}
{{- $isHome := and $names (has "sharecore.durability=bucket" $settings) -}}
{{- $runs := "" -}}
{{- if $pods -}}
{{- range (index $pods.spec.template.spec.containers 0).env -}}
{{- if eq .name "SHARECORE_NODE_ID" -}}{{- $runs = "home" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $names (not $isHome) -}}
{{- fail (printf "broker.home.url: %s holds the copy of the broker that runs. Name an empty prefix" $url) -}}
{{- end -}}
{{- if $.Values.broker.home.standby -}}
{{- if or (not $isHome) (and $pods (not $runs)) -}}
{{- fail (printf "broker.home.standby: the broker that runs has not uploaded its data to %s, and a standby could claim it first. Upgrade with broker.home.standby=false, wait until %s-0 is ready, then set it to true" $url $name) -}}
{{- end -}}
{{- if and $pods (eq (int $pods.spec.replicas) 1) -}}
{{- $status := default dict $pods.status -}}
{{- $isCurrent := and (eq (int $pods.metadata.generation) (int $status.observedGeneration)) (eq (toString $status.currentRevision) (toString $status.updateRevision)) -}}
{{- if not (and $isCurrent (eq (int $status.readyReplicas) 1)) -}}
{{- fail (printf "broker.home.standby: %s-0 is not ready, and may not have uploaded its data to %s. Wait until it is" $name $url) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* server.properties */}}
{{- define "sharecore.properties" -}}
listeners=CLIENTS://:{{ .Values.listener.port }}
listener.security.protocol.map=CLIENTS:{{ include "sharecore.protocol" . }}
{{- if eq .Values.mode "tier" }}
sharecore.upstream.bootstrap.servers={{ .Values.tier.upstream }}
{{- range $name, $value := .Values.tier.upstreamConfig }}
sharecore.upstream.{{ $name }}={{ $value }}
{{- end }}
{{- end }}
{{- if include "sharecore.isHome" . }}
sharecore.durability=bucket
sharecore.bucket.url={{ .Values.broker.home.url }}
{{- with .Values.broker.home.cacheBytes }}
sharecore.bucket.cache.bytes={{ int64 . }}
{{- end }}
{{- end }}
{{- if .Values.metrics.enabled }}
sharecore.metrics.listener=0.0.0.0:{{ .Values.metrics.port }}
{{- end }}
{{- if .Values.tls.secret }}
ssl.keystore.type=PEM
ssl.truststore.type=PEM
ssl.client.auth={{ .Values.tls.clientAuth }}
{{- end }}
{{- if .Values.sasl.mechanisms }}
sasl.enabled.mechanisms={{ join "," .Values.sasl.mechanisms }}
{{- end }}
{{- if .Values.superUsers }}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users={{ join ";" .Values.superUsers }}
{{- end }}
{{- range $name, $value := .Values.config }}
{{ $name }}={{ if kindIs "float64" $value }}{{ printf "%.0f" $value }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{- end -}}

{{/* Deployment and Service of the exporter or the scaler: context, name, values, port, command */}}
{{- define "sharecore.tool" -}}
{{- $top := index . 0 -}}{{- $name := index . 1 -}}{{- $tool := index . 2 -}}{{- $port := index . 3 -}}{{- $command := index . 4 -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "sharecore.fullname" $top }}-{{ $name }}
  labels:
    {{- include "sharecore.labels" $top | nindent 4 }}
    app.kubernetes.io/component: {{ $name }}
spec:
  replicas: {{ default 1 $tool.replicas }}
  selector:
    matchLabels:
      {{- include "sharecore.selector" $top | nindent 6 }}
      app.kubernetes.io/component: {{ $name }}
  template:
    metadata:
      labels:
        {{- include "sharecore.labels" $top | nindent 8 }}
        app.kubernetes.io/component: {{ $name }}
    spec:
      serviceAccountName: {{ include "sharecore.serviceAccount" $top }}
      automountServiceAccountToken: false
      {{- with $top.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext: {{- include "sharecore.podSecurity" $top | nindent 8 }}
      containers:
        - name: {{ $name }}
          image: {{ include "sharecore.image" $top }}
          imagePullPolicy: {{ $top.Values.image.pullPolicy }}
          securityContext: {{- include "sharecore.containerSecurity" $top | nindent 12 }}
          args:
            - {{ $command }}
            - --bootstrap-server={{ default (include "sharecore.bootstrap" $top) $tool.bootstrapServer }}
            - --listen=0.0.0.0:{{ $port }}
            - --interval={{ $tool.interval }}
            - --log-format=json
            {{- if $tool.clientConfigSecret }}
            - --command-config=/etc/sharecore/client/client.properties
            {{- end }}
          ports:
            - {name: {{ $name }}, containerPort: {{ $port }}}
          {{- if eq $command "export-metrics" }}
          livenessProbe:
            httpGet: {path: /healthz, port: {{ $name }}}
            periodSeconds: 10
            timeoutSeconds: 5
          readinessProbe:
            httpGet: {path: /readyz, port: {{ $name }}}
            periodSeconds: 10
            timeoutSeconds: 5
          {{- else }}
          readinessProbe:
            tcpSocket: {port: {{ $name }}}
            periodSeconds: 10
          {{- end }}
          resources: {{- toYaml $tool.resources | nindent 12 }}
          {{- if $tool.clientConfigSecret }}
          volumeMounts:
            - {name: client, mountPath: /etc/sharecore/client, readOnly: true}
          {{- end }}
      {{- if $tool.clientConfigSecret }}
      volumes:
        - name: client
          secret: {secretName: {{ $tool.clientConfigSecret }}}
      {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "sharecore.fullname" $top }}-{{ $name }}
  labels:
    {{- include "sharecore.labels" $top | nindent 4 }}
    app.kubernetes.io/component: {{ $name }}
spec:
  selector:
    {{- include "sharecore.selector" $top | nindent 4 }}
    app.kubernetes.io/component: {{ $name }}
  ports:
    - {name: {{ $name }}, port: {{ $port }}, targetPort: {{ $name }}}
{{- end -}}
