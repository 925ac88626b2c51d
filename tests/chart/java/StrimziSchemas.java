import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.strimzi.crdgenerator.annotations.PresentInVersions;
import io.strimzi.crdgenerator.annotations.RequiredInVersions;
import java.io.File;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * JSON schemas of Strimzi's resources, from the classes with which its operator reads them.
 *
 * <p>Usage: StrimziSchemas FOLDER. For what Kubernetes itself defines inside of them they refer to its own schemas,
 * {@code _definitions.json} beside them.
 */
public final class StrimziSchemas {
    private static final Map<Class<?>, String> PLAIN = Map.of(
            String.class, "string", boolean.class, "boolean", Boolean.class, "boolean",
            int.class, "integer", Integer.class, "integer", long.class, "integer",
            Long.class, "integer", double.class, "number", Double.class, "number");

    /** The names in Kubernetes' definitions of what is in these packages. */
    private static final Map<String, String> KUBERNETES = Map.of(
            "io.fabric8.kubernetes.api.model", "io.k8s.api.core.v1",
            "io.fabric8.kubernetes.api.model.networking.v1", "io.k8s.api.networking.v1");

    private StrimziSchemas() {}

    public static void main(String[] arguments) throws Exception {
        // By name: the compiler may be older than these classes.
        for (String which :
                List.of("kafka.Kafka", "connect.KafkaConnect", "connector.KafkaConnector", "nodepool.KafkaNodePool")) {
            Class<?> kind = Class.forName("io.strimzi.api.kafka.model." + which);
            Map<String, Object> properties = new TreeMap<>();
            properties.put("apiVersion", Map.of("enum", List.of("kafka.strimzi.io/v1")));
            properties.put("kind", Map.of("enum", List.of(kind.getSimpleName())));
            properties.put("metadata", Map.of("type", "object"));
            properties.put("spec", schema(kind.getMethod("getSpec").getReturnType()));
            String name = kind.getSimpleName().toLowerCase() + "-kafka-v1.json";
            Map<String, Object> whole = new TreeMap<>(
                    object(properties, Set.of("apiVersion", "kind", "metadata", "spec")));
            // Without it kubeconform takes draft 4, which refuses an empty list of required fields.
            whole.put("$schema", "http://json-schema.org/draft-07/schema#");
            new ObjectMapper().writeValue(new File(arguments[0], name), whole);
        }
    }

    private static Map<String, Object> object(Map<String, Object> properties, Set<String> required) {
        return Map.of("type", "object", "properties", properties,
                "required", new TreeSet<>(required), "additionalProperties", false);
    }

    private static Object schema(Type type) throws Exception {
        if (type instanceof ParameterizedType of) {
            Object inner = schema(of.getActualTypeArguments()[of.getActualTypeArguments().length - 1]);
            return List.class.isAssignableFrom((Class<?>) of.getRawType())
                    ? Map.of("type", "array", "items", inner)
                    : Map.of("type", "object", "additionalProperties", inner);
        }
        Class<?> found = (Class<?>) type;
        if (PLAIN.containsKey(found)) {
            return Map.of("type", PLAIN.get(found));
        }
        if (found.isEnum()) {
            ObjectMapper mapper = new ObjectMapper();
            return Map.of("enum", mapper.convertValue(found.getEnumConstants(), List.class));
        }
        if (!found.getName().startsWith("io.strimzi.")) {
            String group = KUBERNETES.get(found.getPackageName());
            return group == null
                    ? Map.of()
                    : Map.of("$ref", "_definitions.json#/$defs/" + group + "." + found.getSimpleName());
        }
        Map<String, Object> properties = new TreeMap<>();
        Set<String> required = new TreeSet<>();
        collect(found, properties, required);
        JsonSubTypes kinds = found.getAnnotation(JsonSubTypes.class);
        if (kinds != null) {
            // As in Strimzi's own definitions: all fields of all kinds, and which kinds there are.
            Set<String> names = new TreeSet<>();
            for (JsonSubTypes.Type kind : kinds.value()) {
                collect(kind.value(), properties, new TreeSet<>());
                names.add(kind.name());
            }
            String field = found.getAnnotation(JsonTypeInfo.class).property();
            properties.put(field, Map.of("enum", names));
            required.add(field);
        }
        return object(properties, required);
    }

    private static void collect(Class<?> of, Map<String, Object> properties, Set<String> required)
            throws Exception {
        for (Method method : of.getMethods()) {
            String name = method.getName().replaceFirst("^(get|is)(?=[A-Z])", "");
            if (name.equals(method.getName()) || method.getParameterCount() > 0
                    || method.getDeclaringClass() == Object.class
                    || method.isBridge() || method.isAnnotationPresent(JsonIgnore.class)
                    || name.equals("AdditionalProperties") || isOlder(method)) {
                continue;
            }
            JsonProperty given = method.getAnnotation(JsonProperty.class);
            name = given != null && !given.value().isEmpty()
                    ? given.value() : Character.toLowerCase(name.charAt(0)) + name.substring(1);
            properties.put(name, schema(method.getGenericReturnType()));
            RequiredInVersions versions = method.getAnnotation(RequiredInVersions.class);
            if (given != null && given.required() || versions != null && versions.value().contains("v1+")) {
                required.add(name);
            }
        }
    }

    private static boolean isOlder(Method method) {
        PresentInVersions versions = method.getAnnotation(PresentInVersions.class);
        return versions != null && !versions.value().matches(".*(\\+|v1\\b).*");
    }
}
