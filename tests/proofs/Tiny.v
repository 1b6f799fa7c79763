(** Functions that SQL has, so that plans over tiny tables can be run by Coq and by an engine, and compared. *)
Require Import List Permutation Arith ZArith Lia Bool.
From Dpsql Require Import Near Ops Plan.
Import ListNotations.

(** NULL first, then by value; then the next column. *)
Definition vle (a b : value) : bool := match a, b with None, _ => true | Some _, None => false | Some x, Some y => (x <=? y)%Z end.
Fixpoint rle (a b : row) : bool := match a, b with
  | [], _ => true | _, [] => false
  | x :: a, y :: b => if value_eq x y then rle a b else vle x y end.
Lemma rle_total a : forall b, rle a b = true \/ rle b a = true.
Proof.
  induction a as [|x a IH]; intros [|y b]; simpl; auto. destruct (value_eq x y) as [-> | N].
  - destruct (value_eq y y); [apply IH | congruence].
  - destruct (value_eq y x); [congruence |]. destruct x as [p|], y as [q|]; simpl; auto.
    destruct (Z.leb_spec p q); auto. right. apply Z.leb_le. lia.
Qed.
Lemma vle_anti x y : vle x y = true -> vle y x = true -> x = y.
Proof. destruct x as [p|], y as [q|]; simpl; try discriminate; auto. intros H1 H2. apply Z.leb_le in H1, H2. f_equal. lia. Qed.
Lemma vle_trans x y z : vle x y = true -> vle y z = true -> vle x z = true.
Proof. destruct x as [p|], y as [q|], z as [r|]; simpl; try discriminate; auto. intros H1 H2. apply Z.leb_le in H1, H2. apply Z.leb_le. lia. Qed.
Lemma rle_anti a : forall b, rle a b = true -> rle b a = true -> a = b.
Proof.
  induction a as [|x a IH]; intros [|y b]; simpl; auto; try discriminate. destruct (value_eq x y) as [-> | N].
  - destruct (value_eq y y); [intros; f_equal; auto | congruence].
  - destruct (value_eq y x); [congruence |]. intros H1 H2. elim N. now apply vle_anti.
Qed.
Lemma rle_trans a : forall b c, rle a b = true -> rle b c = true -> rle a c = true.
Proof.
  induction a as [|x a IH]; intros [|y b] [|z c]; simpl; auto; try discriminate.
  destruct (value_eq x y) as [-> | N1], (value_eq y z) as [-> | N2].
  - destruct (value_eq z z); [apply IH | congruence].
  - destruct (value_eq y z); [congruence | auto].
  - destruct (value_eq x z); [congruence | auto].
  - intros H1 H2. destruct (value_eq x z) as [-> | N3]; [elim N1; now apply vle_anti | now apply (vle_trans x y z)].
Qed.

(** SUM of a column: NULL where no value is. *)
Definition plus (a b : value) : value := match a, b with Some x, Some y => Some (x + y)%Z | Some x, None => Some x | None, y => y end.
Definition sum_of (l : list row) : value := fold_right (fun r s => plus (at_ 1 r) s) None l.
Lemma plus_swap a b c : plus a (plus b c) = plus b (plus a c).
Proof. destruct a, b, c; simpl; auto; f_equal; lia. Qed.
Lemma sum_perm l l' : Permutation l l' -> sum_of l = sum_of l'.
Proof. induction 1; simpl; auto; try congruence. apply plus_swap. Qed.
Definition number (l : list row) : value := Some (Z.of_nat (length l)).
Definition more (a b : value) : bool := match a, b with Some x, Some y => (y <? x)%Z | _, _ => false end.

(** fn: x + y. pred 0: x > y of the first two columns; 1: of the first and the last of four. elems: x, y. agg: COUNT, SUM(y). win: COUNT. *)
Definition tiny : interp.
Proof.
  refine {| fn := fun _ r => match at_ 0 r, at_ 1 r with Some x, Some y => Some (x + y)%Z | _, _ => None end;
    pred := fun p r => if p =? 0 then more (at_ 0 r) (at_ 1 r) else more (at_ 0 r) (at_ 3 r);
    elems := fun _ r => [at_ 0 r; at_ 1 r];
    agg := fun _ l => [number l; sum_of l];
    win := fun _ l => map (fun r => r ++ [number l]) l; before := rle |}.
  - intros f l l' P. unfold number. now rewrite (Permutation_length P), (sum_perm _ _ P).
  - intros f l l' P. unfold number. rewrite (Permutation_length P). now apply Permutation_map.
  - intros f l r H. apply in_map_iff in H. destruct H as (r0 & <- & H). eauto.
  - intros f l. rewrite map_map. erewrite map_ext; [rewrite map_id; reflexivity |]. intros r. apply removelast_last.
  - apply rle_total. - apply rle_trans. - apply rle_anti.
Defined.

Definition same (l m : list row) : bool := forallb (fun x => count_occ row_eq l x =? count_occ row_eq m x) (l ++ m).
(** Two tables of two columns, a plan, and the rows that an engine gave. *)
Definition case : Type := list row * list row * plan * list row.
Definition agrees_with (c : case) : bool := let '(a, b, p, rows) := c in
  same (eval (fun _ => 2) (fun _ => 2) tiny (fun t => match t with 0 => a | _ => b end) p) rows.
Fixpoint different (n : nat) (cs : list case) : list nat := match cs with
  | [] => [] | c :: r => if agrees_with c then different (S n) r else n :: different (S n) r end.
