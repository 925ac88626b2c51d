package shardmerge.connect;

import java.util.Scanner;

import io.debezium.document.Document;
import io.debezium.document.DocumentReader;

/** Tells for each two lines, a record's position and an offset, whether the record applies. */
final class HistoryOrder {

    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in, "UTF-8");
        DocumentReader reader = DocumentReader.defaultReader();
        TrueSchemaHistory.BinlogOrder order = new TrueSchemaHistory.BinlogOrder();
        while (lines.hasNextLine()) {
            Document recorded = reader.read(lines.nextLine());
            Document desired = reader.read(lines.nextLine());
            System.out.println(order.isPositionAtOrBefore(recorded, desired));
        }
    }
}
