(** The hypotheses can be met: an interpretation, two neighbouring databases, and a plan that Coq runs. *)
Require Import List Permutation ZArith Lia.
From Dpsql Require Import Near Ops Plan Sound.
Import ListNotations.

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
Definition example : interp.
Proof.
  refine {| fn := fun _ r => at_ 0 r; pred := fun p r => match at_ p r with Some _ => true | _ => false end; elems := fun _ r => r;
    agg := fun _ l => [Some (Z.of_nat (length l))]; win := fun _ l => map (fun r => r ++ [Some (Z.of_nat (length l))]) l; before := rle |}.
  - intros f l l' P. now rewrite (Permutation_length P).
  - intros f l l' P. rewrite (Permutation_length P). now apply Permutation_map.
  - intros f l r H. apply in_map_iff in H. destruct H as (r0 & <- & H). eauto.
  - intros f l. rewrite map_map. erewrite map_ext; [rewrite map_id; reflexivity |]. intros r. apply removelast_last.
  - apply rle_total. - apply rle_trans. - apply rle_anti.
Defined.

(** visits(person, cost); keep one row of each cost; persons' totals. *)
Open Scope Z_scope.
Definition before_ (t : nat) : list row := match t with 0%nat => [[Some 1; Some 5]; [Some 2; Some 5]; [None; Some 7]] | _ => [] end.
Definition unit_ (t : nat) : list row := match t with 0%nat => [[Some 3; Some 5]; [Some 3; Some 9]] | _ => [] end.
Definition after_ (t : nat) : list row := before_ t ++ unit_ t.
Definition ids_of (t : nat) : protection := match t with 0%nat => IdUnit 0 | _ => Unchanged end.
Example are_neighbours : neighbours ids_of before_ unit_ after_ 3.
Proof.
  intros [|t]; simpl; auto. split; [reflexivity |]. split; intros r H; simpl in H; repeat destruct H as [<- | H]; try tauto; vm_compute; congruence.
Qed.
Definition totals := Group [Col 0] 0 (Scan 0).
Example derived : derive (fun _ => 2%nat) (fun _ => 1%nat) ids_of (fun _ => []) totals = Some (Ids [0%nat]).
Proof. reflexivity. Qed.
Example result : eval (fun _ => 2%nat) (fun _ => 1%nat) example after_ totals = [[Some 1; Some 1]; [Some 2; Some 1]; [None; Some 1]; [Some 3; Some 2]].
Proof. reflexivity. Qed.

(** [tight]: GROUP BY 2k. One row more changes a group's row into another. *)
Definition one (t : nat) : list row := [[Some 1; Some 5]].
Definition two (t : nat) : list row := [[Some 1; Some 5]; [Some 1; Some 6]].
Example group_is_tight : ~ near 1 (eval (fun _ => 2%nat) (fun _ => 1%nat) example one totals) (eval (fun _ => 2%nat) (fun _ => 1%nat) example two totals).
Proof.
  vm_compute eval. intros (c & r & a & P & Q & L).
  assert (Lp := Permutation_length P). assert (Lq := Permutation_length Q). rewrite app_length in *. simpl in *.
  destruct r as [|r0 r], a as [|a0 a]; simpl in *; try lia.
  rewrite app_nil_r in *. assert (E : Permutation [[Some 1; Some 1]] [[Some 1; Some 2]]) by (etransitivity; [exact P | symmetry; exact Q]).
  apply Permutation_length_1 in E. discriminate.
Qed.
